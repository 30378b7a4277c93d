/// The topics of all collections of a store.
struct Topics {
  private var topics: [String: any AnyTopic] = [:]

  subscript(collection: String) -> (any AnyTopic)? { topics[collection] }

  var all: some Collection<any AnyTopic> { topics.values }

  /// Opens a key: validates the key and the type of its values.
  ///
  /// - Throws: ``StoreError/invalidKey(_:)`` or
  ///   ``StoreError/collectionHasAnotherType(collection:existing:requested:)``.
  mutating func open<Value>(_ key: StoreKey<Value>) throws(StoreError) -> Slot<Value> {
    try open(key, named: key.keyName.encoded())
  }

  /// Opens a key whose name is already encoded.
  ///
  /// - Throws: ``StoreError/collectionHasAnotherType(collection:existing:requested:)``.
  mutating func open<Value>(_ key: StoreKey<Value>, named name: String) throws(StoreError) -> Slot<Value> {
    try topic(of: key.collection, as: Value.self).slot(key, named: name)
  }

  /// Returns the topic of a collection, and creates it on the first call.
  ///
  /// - Throws: ``StoreError/collectionHasAnotherType(collection:existing:requested:)``.
  mutating func topic<Value>(
    of collection: String, as type: Value.Type
  ) throws(StoreError) -> Topic<Value> where Value: Codable & Sendable {
    guard let existing = topics[collection] else {
      let topic = Topic<Value>(collection: collection)
      topics[collection] = topic
      return topic
    }
    guard let topic = existing as? Topic<Value> else {
      throw .collectionHasAnotherType(
        collection: collection, existing: existing.valueTypeName, requested: "\(Value.self)")
    }
    return topic
  }

  /// Returns the names of all observed keys, and possibly other names.
  ///
  /// A key is observed by itself or as a part of its collection. If a collection is observed, the result has all names
  /// in the backend, including those of other collections. Names may occur more than once.
  func observedNames(_ backend: inout some StoreBackend) throws(StoreError) -> [String] {
    var names = topics.values.contains { $0.isCollectionObserved } ? try backend.names() : []
    for topic in topics.values {
      // The backend no longer has the name of a key that was removed externally, so the keys that were stored when the
      // store last read or wrote them are added.
      for key in topic.observedKeys + (topic.isCollectionObserved ? topic.storedKeys : []) {
        names.append(try key.encoded())
      }
    }
    return names
  }
}
