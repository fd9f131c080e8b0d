#!/bin/sh
# Python's clients against one broker: confluent-kafka of Debian and, with CLIENTS naming the directory of
# scripts/install_clients.sh, the newest confluent-kafka and aiokafka. Usage: tests/compat/python/run.sh BOOTSTRAP
set -eu
cd "$(dirname "$0")"
/usr/bin/python3 -c 'import confluent_kafka as c; print("# confluent-kafka", getattr(c, "__version__", c.version()[0]), "librdkafka", c.libversion()[0])'
/usr/bin/python3 compat.py "$1"
if [ -n "${CLIENTS:-}" ]; then
  python=$CLIENTS/python/bin/python
  "$python" -c 'import confluent_kafka as c; print("# confluent-kafka", getattr(c, "__version__", c.version()[0]), "librdkafka", c.libversion()[0])'
  "$python" compat.py "$1"
  "$python" -c 'import aiokafka; print("# aiokafka", aiokafka.__version__)'
  "$python" aio.py "$1"
fi
