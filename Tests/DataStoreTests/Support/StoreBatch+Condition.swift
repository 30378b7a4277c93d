import DataStore

extension StoreBatch {
  /// Creates a batch that saves a value if the stored one has the tag; a `nil` tag requires that nothing is stored.
  init<Value>(saving value: Value, for key: StoreKey<Value>, requiring tag: StoreTag?) {
    self.init()
    require(tag, of: key)
    save(value, for: key)
  }
}
