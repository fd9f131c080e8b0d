/** Frames, headers and ApiVersions: what a broker does before it knows what is asked. */
import { concatBytes } from "../../../src/lib/bytes.ts";
import { apiVersionsApi } from "../../../src/protocol/message/18_api_versions.ts";
import { metadataApi } from "../../../src/protocol/message/03_metadata.ts";
import { decodePrefix } from "../../../src/protocol/schema.ts";
import { anyFrame, readerOf, type Scenario } from "../script.ts";

const NOTHING = new Uint8Array(0);
const bytes = (...values: number[]) => Uint8Array.from(values);

const apiVersions: Scenario = {
  name: "api versions",
  async run(script) {
    const client = { clientSoftwareName: "apache-kafka-java", clientSoftwareVersion: "4.2.1" };
    await script.versions("table", apiVersionsApi, client);
    const names = [
      ["empty", "", ""],
      ["dot inside", "a.b", "1.0"],
      ["dash inside", "a-b", "1-0"],
      ["dot first", ".a", "1"],
      ["dash last", "a", "1-"],
      ["blank", "a b", "1"],
      ["underscore", "a_b", "1"],
      ["umlaut", "ä", "1"],
    ] as const;
    for (const [label, clientSoftwareName, clientSoftwareVersion] of names) {
      const request = { clientSoftwareName, clientSoftwareVersion };
      await script.check(`software name: ${label}`, apiVersionsApi, 3, request);
    }
    for (const version of [5, 99, 32767, -1]) {
      const frame = await script.raw(`version ${version}`, anyFrame(18, version, bytes(0)));
      if (frame === null) continue;
      const reader = readerOf(frame);
      reader.i32();
      script.note(`version ${version} says`, decodePrefix(apiVersionsApi.response, 0, reader));
    }
  },
};

const frames: Scenario = {
  name: "frames",
  async run(script) {
    const list = concatBytes([bytes(0, 0, 0, 0)]);
    await script.raw("null client id", anyFrame(3, 1, list, null), "a");
    await script.raw("empty client id", anyFrame(3, 1, list, ""), "b");
    await script.raw("unknown key", anyFrame(999, 0, NOTHING), "c");
    await script.raw("negative key", anyFrame(-1, 0, NOTHING), "d");
    await script.raw("removed key: LeaderAndIsr", anyFrame(4, 0, NOTHING), "e");
    await script.raw("controller's key: Vote", anyFrame(52, 0, NOTHING), "f");
    await script.raw("version below", anyFrame(1, 3, NOTHING), "g");
    await script.raw("version above", anyFrame(3, 14, NOTHING), "h");
    await script.raw("produce v2", anyFrame(0, 2, NOTHING), "i");
    await script.raw("body cut off", anyFrame(3, 1, bytes(0, 0, 0, 2, 0, 1, 65)), "j");
    await script.raw("huge array", anyFrame(3, 1, bytes(127, 255, 255, 255)), "k");
    await script.raw("negative array", anyFrame(3, 1, bytes(255, 255, 255, 254)), "l");
    await script.raw("bytes left over", anyFrame(3, 1, bytes(0, 0, 0, 0, 9, 9)), "m");
    await script.raw("negative size", bytes(255, 255, 255, 255), "n");
    await script.raw("size above the limit", bytes(6, 64, 0, 1), "o");
    await script.raw("empty frame", bytes(0, 0, 0, 0), "p");
    await script.raw("half a header", bytes(0, 0, 0, 4, 0, 3, 0, 1), "q");
    await script.raw("text", new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n"), "r");
    await script.raw("invalid UTF-8", anyFrame(3, 1, bytes(0, 0, 0, 1, 0, 1, 255)), "s");
    await script.raw("string without length", anyFrame(3, 1, bytes(0, 0, 0, 1, 255, 255)), "t");
    await script.check("after all that", metadataApi, 1, { topics: [] });
  },
};

export const CONNECTION = [apiVersions, frames];
