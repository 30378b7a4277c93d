extension ChannelCore {
  /// Waits until a further element would be of use to some subscriber, or the calling task is cancelled.
  ///
  /// An element is of no use when every subscriber would drop it, or overflow because of it. One task at a time may
  /// wait.
  func demand() async {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        // A cancellation that came before is seen here, one that comes later finds the producer waiting.
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

  /// Lets a waiting producer go on, if a further element is of use now.
  func signalDemand() {
    withContents { contents in
      contents.waitingProducer != nil && contents.state.isElementUseful ? contents.waitingProducer.take() : nil
    }?.resume()
  }
}
