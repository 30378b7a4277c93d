internal import GraphQLClient

extension APISessionError {
  /// Whether the same request is expected to fail every time.
  ///
  /// A request may succeed later after a transient failure or a cancellation. It also may if the credentials have
  /// expired (401, 407), because they are renewed when the user signs in again, and if the server is still processing
  /// an attempt under the same key (409).
  var isFinal: Bool {
    if isTransient || self == .cancelled { return false }
    return status.map { ![401, 407, 409].contains($0) } ?? true
  }
}
