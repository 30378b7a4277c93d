extension ChannelCore {
  /// Suspends until at least one subscriber would keep another element, or the calling task is cancelled.
  ///
  /// A subscriber doesn't keep an element that it would drop or that would overflow it. Only one task at a time may
  /// call this.
  func demand() async {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        // `Task.isCancelled` covers a cancellation before this point. The handler of a later one takes the lock after
        // this section and finds the continuation.
        let mustWait = withContents { contents in
          if contents.state.isElementUseful || Task.isCancelled { return false }
          contents.waitingProducer = continuation
          return true
        }
        if !mustWait { continuation.resume() }
      }
    } onCancel: {
      withContents { $0.waitingProducer.take() }?.resume()
    }
  }

  /// Resumes the producer suspended in ``demand()``, if any, when a subscriber would keep another element.
  func signalDemand() {
    withContents { contents in
      contents.waitingProducer != nil && contents.state.isElementUseful ? contents.waitingProducer.take() : nil
    }?.resume()
  }
}
