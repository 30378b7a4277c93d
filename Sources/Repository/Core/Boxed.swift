/// A property whose large value is copied only when it changes.
///
/// A generic value is copied field by field at each access to the value that contains it. This one is a reference,
/// and keeps the semantics of a value: a change of a copy doesn't change the original.
@propertyWrapper
struct Boxed<Value> {
  private final class Storage {
    var value: Value

    init(_ value: Value) {
      self.value = value
    }
  }

  private var storage: Storage

  init(wrappedValue: Value) {
    storage = Storage(wrappedValue)
  }

  var wrappedValue: Value {
    _read { yield storage.value }
    _modify {
      if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.value) }
      yield &storage.value
    }
  }
}
