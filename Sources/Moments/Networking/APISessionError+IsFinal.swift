internal import GraphQLClient

extension APISessionError {
  /// Whether the same request is expected to fail every time.
  ///
  /// A request may succeed later after a transient failure or a cancellation. It may also succeed after the user has
  /// signed in again (401, 407), or once the server has processed an earlier attempt under the same idempotency key
  /// (409).
  var isFinal: Bool {
    if isTransient || self == .cancelled { return false }
    return status.map { ![401, 407, 409].contains($0) } ?? true
  }
}
