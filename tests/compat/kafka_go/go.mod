module skerry/compat/kafka_go

go 1.24

require github.com/segmentio/kafka-go v0.4.51

require (
	github.com/klauspost/compress v1.15.9 // indirect
	github.com/pierrec/lz4/v4 v4.1.15 // indirect
)

require skerry/compat/behaviours v0.0.0

replace skerry/compat/behaviours => ../go_behaviours
