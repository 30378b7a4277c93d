import DataStore

extension StoreBatch {
  /// Creates a batch that saves a value if the key's value has the tag; `nil` requires that the key has no value.
  init<Value>(saving value: Value, for key: StoreKey<Value>, requiring tag: StoreTag?) {
    self.init()
    require(tag, of: key)
    save(value, for: key)
  }
}
