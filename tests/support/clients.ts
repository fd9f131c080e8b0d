/** How tests set up Kafka clients of npm: quiet, patient, and ended by their own error instead of a restart. */
import { Kafka, type KafkaConfig, logLevel } from "kafkajs";

export function kafkajsAt(
  address: string,
  { retry, ...over }: Omit<KafkaConfig, "brokers" | "logLevel">,
): Kafka {
  return new Kafka({
    ...over,
    brokers: [address],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 100, restartOnFailure: () => Promise.resolve(false), ...retry },
  });
}

/** What each client of @platformatic/kafka is given. */
export function platformaticAt(address: string, clientId: string) {
  return { clientId, bootstrapBrokers: [address], retries: 20, retryDelay: 100 };
}
