/// A source whose replies may lack parts that an earlier reply contained.
public protocol CompletingSource: RepositorySource {
  /// Returns a fetched value, completed with parts of the stored one.
  ///
  /// The repository stores the returned value. It also completes the values in replies to mutations, but not next and
  /// previous pages of a ``PagedSource``.
  ///
  /// - Parameters:
  ///   - fetched: The fetched value; for a ``PagedSource``, with the stored elements that follow it.
  ///   - stored: The stored value that it replaces.
  func complete(_ fetched: Value, with stored: Value) -> Value
}
