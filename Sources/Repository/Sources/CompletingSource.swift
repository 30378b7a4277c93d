/// A source whose replies may lack parts that an earlier reply contained.
package protocol CompletingSource: RepositorySource {
  /// Returns a fetched value, completed with parts of the stored one.
  func complete(_ fetched: Value, with stored: Value) -> Value
}
