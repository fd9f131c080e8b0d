/** Those who wait for a WebSocket to have room. */
export class SocketRoom {
  #waiting: (() => void)[] = [];

  wait(): Promise<void> {
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  open(): void {
    for (const go of this.#waiting.splice(0)) go();
  }
}
