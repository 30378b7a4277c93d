/// A source whose replies may lack what an earlier one brought.
package protocol CompletingSource: RepositorySource {
  /// Returns a fetched value with what it lacks, taken from the stored one.
  func complete(_ fetched: Value, with stored: Value) -> Value
}
