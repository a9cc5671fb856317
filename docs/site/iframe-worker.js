// Search in pages that were opened as files: browsers start no workers there, so the worker's script runs in a hidden
// frame of the page. With a server this does nothing.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.inside.importScripts = (...all) => all.reduce((last, one) => last.then(() => this.load(one)), Promise.resolve())
      this.ready = this.load(address)
    }

    load(address) {
      const script = this.inside.document.createElement("script")
      script.src = new URL(address, document.baseURI)
      return new Promise((loaded, failed) => {
        script.onload = loaded
        script.onerror = failed
        this.inside.document.body.append(script)
      })
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })))
    }

    terminate() {}
  }
}
