//! The behaviours of the matrix that rskafka offers, against one broker. Usage: rskafka BOOTSTRAP
use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::{Record, RecordAndOffset};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// As Cargo.toml pins it.
const VERSION: &str = "0.6.0";
const RECORDS: usize = 500;

/// Prints a line: name, tab, pass or fail, tab, detail.
async fn behaviour(name: &str, body: impl Future<Output = Outcome>) {
    let outcome = tokio::time::timeout(Duration::from_secs(30), body).await;
    let detail = match outcome {
        Ok(Ok(())) => return println!("{name}\tpass\t"),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "not done in time".to_owned(),
    };
    println!("{name}\tfail\t{}", detail.split_whitespace().collect::<Vec<_>>().join(" "));
}

fn skip(why: &str, names: &[&str]) {
    for name in names {
        println!("{name}\tskip\t{why}");
    }
}

fn same<T: PartialEq + std::fmt::Debug>(got: T, expected: T, what: &str) -> Outcome {
    if got == expected {
        return Ok(());
    }
    let mut text = format!("{what}: expected {expected:?}, got {got:?}");
    text.truncate(300);
    Err(text.into())
}

fn record(key: Option<&str>, value: Option<&str>, timestamp: DateTime<Utc>) -> Record {
    let bytes = |text: &str| text.as_bytes().to_vec();
    Record { key: key.map(bytes), value: value.map(bytes), headers: BTreeMap::new(), timestamp }
}

fn plain(value: &str) -> Record {
    record(None, Some(value), DateTime::from_timestamp_millis(1_000_000).unwrap_or_default())
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("v{i}")).collect()
}

fn values(records: &[RecordAndOffset]) -> Vec<String> {
    let text = |each: &RecordAndOffset| {
        String::from_utf8_lossy(each.record.value.as_deref().unwrap_or_default()).into_owned()
    };
    records.iter().map(text).collect()
}

struct Compat {
    client: Client,
    run: String,
}

impl Compat {
    async fn topic(&self, name: &str, partitions: i32) -> Result<String, Box<dyn std::error::Error>> {
        let topic = format!("{}-{name}", self.run);
        self.client.controller_client()?.create_topic(&topic, partitions, 1, 5000).await?;
        Ok(topic)
    }

    async fn partition(&self, name: &str) -> Result<PartitionClient, Box<dyn std::error::Error>> {
        let topic = self.topic(name, 1).await?;
        Ok(self.client.partition_client(topic, 0, UnknownTopicHandling::Retry).await?)
    }

    async fn read(
        &self,
        partition: &PartitionClient,
        from: i64,
        count: usize,
    ) -> Result<Vec<RecordAndOffset>, Box<dyn std::error::Error>> {
        let mut got: Vec<RecordAndOffset> = Vec::new();
        while got.len() < count {
            let next = got.last().map_or(from, |last| last.offset + 1);
            got.extend(partition.fetch_records(next, 1..10_000_000, 500).await?.0);
        }
        Ok(got)
    }

    async fn produce_and_read(&self, name: &str, compression: Compression) -> Outcome {
        let partition = self.partition(name).await?;
        let sent = numbered(RECORDS).iter().map(|value| plain(value)).collect();
        let offsets = partition.produce(sent, compression).await?;
        same(offsets, (0..RECORDS as i64).collect(), "offsets")?;
        same(values(&self.read(&partition, 0, RECORDS).await?), numbered(RECORDS), "values")
    }

    async fn metadata(&self) -> Outcome {
        let topic = self.topic("metadata", 3).await?;
        let listed = self.client.list_topics().await?;
        let found = listed.into_iter().find(|each| each.name == topic);
        same(found.map(|each| each.partitions.len()), Some(3), "partitions")
    }

    async fn shapes(&self) -> Outcome {
        let partition = self.partition("shapes").await?;
        let time = DateTime::from_timestamp_millis(5000).unwrap_or_default();
        let mut whole = record(Some("k"), Some("v"), time);
        whole.headers.insert("a".to_owned(), b"1".to_vec());
        let sent = vec![whole, record(Some("k"), None, time), record(None, Some(""), time)];
        partition.produce(sent.clone(), Compression::NoCompression).await?;
        let got = self.read(&partition, 0, 3).await?;
        same(got.into_iter().map(|each| each.record).collect::<Vec<_>>(), sent, "records")
    }

    async fn large_batch(&self) -> Outcome {
        let partition = self.partition("large").await?;
        let sent: Vec<String> = (0..1000).map(|i| format!("{i}{}", "x".repeat(900))).collect();
        partition.produce(sent.iter().map(|value| plain(value)).collect(), Compression::NoCompression).await?;
        same(values(&self.read(&partition, 0, 1000).await?) == sent, true, "1000 records of 900 bytes")
    }

    async fn offsets(&self) -> Outcome {
        let partition = self.partition("offsets").await?;
        let at = |i: usize| DateTime::from_timestamp_millis(1000 * (i as i64 + 1)).unwrap_or_default();
        let sent = (0..10).map(|i| record(None, Some(&format!("v{i}")), at(i))).collect();
        partition.produce(sent, Compression::NoCompression).await?;
        behaviour("consume from an offset", async {
            let got = self.read(&partition, 7, 3).await?;
            same((got[0].offset, values(&got).concat()), (7, "v7v8v9".to_owned()), "records")
        })
        .await;
        behaviour("consume from a time", async {
            let time = DateTime::from_timestamp_millis(4500).unwrap_or_default();
            let offset = partition.get_offset(OffsetAt::Timestamp(time)).await?;
            same(offset, 4, "offset of 4500")?;
            same(values(&self.read(&partition, offset, 1).await?)[0].clone(), "v4".to_owned(), "value there")
        })
        .await;
        behaviour("list offsets", async {
            let ends = (partition.get_offset(OffsetAt::Earliest).await?, partition.get_offset(OffsetAt::Latest).await?);
            same(ends, (0, 10), "ends")
        })
        .await;
        behaviour("admin: delete records", async {
            partition.delete_records(4, 5000).await?;
            same(partition.get_offset(OffsetAt::Earliest).await?, 4, "start")
        })
        .await;
        Ok(())
    }

    async fn admin_topics(&self) -> Outcome {
        let topic = self.topic("admin-topics", 2).await?;
        let again = self.client.controller_client()?.create_topic(&topic, 2, 1, 5000).await;
        same(again.is_err_and(|error| error.to_string().contains("TopicAlreadyExists")), true, "refused once more")?;
        self.client.controller_client()?.delete_topic(&topic, 5000).await?;
        let listed = self.client.list_topics().await?;
        same(listed.iter().any(|each| each.name == topic), false, "listed after it was deleted")
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome {
    println!("version\t{VERSION}");
    let bootstrap = std::env::args().nth(1).ok_or("usage: rskafka BOOTSTRAP")?;
    let client = ClientBuilder::new(vec![bootstrap]).build().await?;
    let run = format!("rskafka-{}", SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos());
    let compat = Compat { client, run };
    behaviour("metadata", compat.metadata()).await;
    let codecs = [
        ("none", Compression::NoCompression),
        ("gzip", Compression::Gzip),
        ("snappy", Compression::Snappy),
        ("lz4", Compression::Lz4),
        ("zstd", Compression::Zstd),
    ];
    for (name, codec) in codecs {
        behaviour(&format!("produce {name}"), compat.produce_and_read(name, codec)).await;
    }
    behaviour("acks all", compat.produce_and_read("acks-all", Compression::default())).await;
    behaviour("keys, headers, nulls", compat.shapes()).await;
    behaviour("large batch", compat.large_batch()).await;
    compat.offsets().await?;
    behaviour("admin: topics", compat.admin_topics()).await;
    skip(
        "not in this client",
        &[
            "acks 0",
            "acks 1",
            "idempotent producer",
            "group: two members",
            "group: resume",
            "group: KIP-848",
            "committed offsets",
            "txn: commit",
            "txn: abort",
            "txn: read_committed",
            "txn: fencing",
            "txn: consume-transform-produce",
            "admin: cluster",
            "admin: partitions",
            "admin: configs",
            "admin: groups",
            "admin: delete offsets",
            "admin: describe producers",
            "admin: describe transactions",
            "admin: quotas",
            "admin: log dirs",
        ],
    );
    Ok(())
}
