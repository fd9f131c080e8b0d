module skerry/compat/behaviours

go 1.24
