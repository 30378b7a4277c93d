internal import GraphQLClient

extension APISessionError {
  /// Whether the same request would fail again for as long as it stays the same.
  ///
  /// It would not where credentials have expired (401, 407), which are renewed when the user signs in again, and where
  /// the server still works on an attempt under the same key (409).
  var isFinal: Bool {
    if isTransient || self == .cancelled { return false }
    return status.map { ![401, 407, 409].contains($0) } ?? true
  }
}
