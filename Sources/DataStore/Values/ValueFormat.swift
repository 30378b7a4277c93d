internal import Foundation

/// How values of one type become bytes, and bytes become values.
protocol ValueFormat<Value>: Sendable {
  associatedtype Value: Codable & Sendable

  /// The schema in which values are written.
  var schema: StoreSchema { get }

  /// Encodes a value.
  ///
  /// - Parameters:
  ///   - stored: The value that is stored now, if it is at hand: its parts are used again where they are equal.
  ///   - readPart: Returns the bytes of a stored part, or `nil` if they aren't at hand.
  /// - Throws: What `encode(to:)` of the value throws, or `EncodingError` for what JSON can't express.
  func encode(
    _ value: Value, over stored: StoredParts<Value>?, readPart: (_ id: String) -> Data?
  ) throws -> EncodedValue

  /// Decodes a value.
  ///
  /// - Parameter parts: The bytes of the parts that the header lists, in order.
  func decode(_ header: Envelope.Header, body: Data, parts: [Data]) -> DecodedValue<Value>
}

/// A value, and how it is divided into the parts that are stored.
struct StoredParts<Value> {
  let value: Value
  /// Empty for a value that is stored whole.
  let ids: [String]
  /// The number of elements in each part.
  let counts: [Int]
}

/// The bytes of a value without its header.
struct EncodedValue {
  /// The whole value, or the head of one in parts.
  let body: Data
  /// All parts of the value; `nil` for one that is stored whole.
  let partIDs: [String]?
  /// The number of elements in each part.
  let counts: [Int]
  /// The parts that aren't stored yet.
  let newParts: [(id: String, bytes: Data)]
}

enum DecodedValue<Value> {
  /// `counts` has the number of elements in each part; `nil` if that isn't known, or the value is stored whole.
  case value(Value, counts: [Int]?)
  case unmigratable(MigrationFailure)
  case corrupt(reason: String)
}

/// Returns the format of a type: in parts for a ``PartitionedValue``, whole for any other.
func makeValueFormat<Value: Codable & Sendable>(of type: Value.Type) -> any ValueFormat<Value> {
  func partitioned<Partitioned: PartitionedValue>(_ type: Partitioned.Type) -> any ValueFormat {
    PartitionedFormat<Partitioned>()
  }
  if type == UntypedValue.self, let format = UntypedFormat() as? any ValueFormat<Value> { return format }
  if let type = type as? any PartitionedValue.Type, let format = partitioned(type) as? any ValueFormat<Value> {
    return format
  }
  return WholeFormat<Value>()
}

/// Keeps a value as one JSON text.
private struct WholeFormat<Value: Codable & Sendable>: ValueFormat {
  let schema = StoreSchema.of(Value.self)

  func encode(
    _ value: Value, over stored: StoredParts<Value>?, readPart: (_ id: String) -> Data?
  ) throws -> EncodedValue {
    EncodedValue(body: try JSONEncoder.ofStore.encode(value), partIDs: nil, counts: [], newParts: [])
  }

  func decode(_ header: Envelope.Header, body: Data, parts: [Data]) -> DecodedValue<Value> {
    let bytes = header.partIDs == nil ? body : PartitionedJSON.join(head: body, parts: parts)
    if header.schema < schema.version {
      return schema.migrate(bytes, from: header.schema) { try JSONDecoder().decode(Value.self, from: $0) }
    }
    guard header.partIDs == nil else {
      // Not corrupt: an older version of the program can still read it.
      let reason = "it was stored in parts, which takes a schema step back to a whole value"
      return .unmigratable(MigrationFailure(version: header.schema, reason: reason))
    }
    do {
      return .value(try JSONDecoder().decode(Value.self, from: body), counts: nil)
    } catch {
      return .corrupt(reason: String(describing: error))
    }
  }
}

/// Keeps the head of a value as one JSON text, and its elements in chunks.
private struct PartitionedFormat<Value: PartitionedValue>: ValueFormat {
  let schema = StoreSchema.of(Value.self)

  func encode(
    _ value: Value, over stored: StoredParts<Value>?, readPart: (_ id: String) -> Data?
  ) throws -> EncodedValue {
    let encoder = JSONEncoder.ofStore
    let elements = value.elements
    let plan = ChunkPlan(
      oldCounts: stored?.counts ?? [], old: stored?.value.elements ?? [], new: elements, of: Value.self)
    var (ids, counts): ([String], [Int]) = ([], [])
    var newParts: [(id: String, bytes: Data)] = []
    for chunk in plan.chunks {
      switch chunk {
      case .kept(let index):
        guard let stored else { preconditionFailure("Only a stored chunk can be kept.") }
        ids.append(stored.ids[index])
        counts.append(stored.counts[index])
      case .new(let range, let base):
        let bytes: Data
        if let stored, let base,
          let patched = try encode(elements[range], over: stored, at: base, readPart: readPart, encoder)
        {
          bytes = patched
        } else {
          bytes = try encoder.encode(Array(elements[range]))
        }
        let id = PartID.make(for: bytes)
        ids.append(id)
        counts.append(range.count)
        newParts.append((id, bytes))
      }
    }
    return EncodedValue(body: try encoder.encode(value.head), partIDs: ids, counts: counts, newParts: newParts)
  }

  /// Encodes a chunk with the bytes of a stored one, if they have elements in common and the bytes are at hand.
  private func encode(
    _ elements: ArraySlice<Value.Element>, over stored: StoredParts<Value>, at index: Int,
    readPart: (_ id: String) -> Data?, _ encoder: JSONEncoder
  ) throws -> Data? {
    let (id, count) = (stored.ids[index], stored.counts[index])
    let start = stored.counts[..<index].reduce(0, +)
    let storedElements = stored.value.elements[start..<start + count]
    let difference = ChunkDifference(from: storedElements.span, to: elements.span, of: Value.self)
    // The checksum is compared because corrupt bytes would get a right one here.
    guard difference.usesStored, let bytes = readPart(id), PartID.matches(id, bytes),
      let array = JSONArray(bytes, count: count)
    else { return nil }
    return JSONArray.join(
      try difference.runs.map { run in
        switch run {
        case .stored(let range): array.elements(range)
        case .new(let range):
          // The array without its brackets.
          try encoder.encode(Array(elements.dropFirst(range.lowerBound).prefix(range.count))).dropFirst().dropLast()
        }
      })
  }

  func decode(_ header: Envelope.Header, body: Data, parts: [Data]) -> DecodedValue<Value> {
    let isInParts = header.partIDs != nil
    if header.schema < schema.version {
      let bytes = isInParts ? PartitionedJSON.join(head: body, parts: parts) : body
      return schema.migrate(bytes, from: header.schema, decode: PartitionedJSON.decode)
    }
    do {
      guard isInParts else { return .value(try JSONDecoder().decode(Value.self, from: body), counts: nil) }
      let head = try JSONDecoder().decode(Value.Head.self, from: body)
      let chunks = try parts.map { try JSONDecoder().decode([Value.Element].self, from: $0) }
      let elements = chunks.flatMap { $0 }
      let value = Value(head: head, elements: elements)
      // A type that has changed may leave out or move elements that an older version of the program stored.
      return .value(value, counts: Self.areEqual(value.elements, elements) ? chunks.map(\.count) : nil)
    } catch {
      return .corrupt(reason: String(describing: error))
    }
  }

  private static func areEqual(_ left: [Value.Element], _ right: [Value.Element]) -> Bool {
    left.count == right.count && Value.equalPrefixCount(of: left.span, and: right.span) == left.count
  }
}

/// The JSON of a value in parts, joined: `{"elements":[…],"head":…}`.
private enum PartitionedJSON {
  private struct Joined<Value: PartitionedValue>: Decodable {
    let head: Value.Head
    let elements: [Value.Element]
  }

  static func join(head: Data, parts: [Data]) -> Data {
    // Each part is a JSON array with at least one element.
    let elements = parts.map { $0.dropFirst().dropLast() }.joined(separator: Data(",".utf8))
    return Data(#"{"elements":["#.utf8) + Data(elements) + Data(#"],"head":"#.utf8) + head + Data("}".utf8)
  }

  /// Decodes the result of a migration, which may have either form.
  static func decode<Value: PartitionedValue>(_ bytes: Data) throws -> Value {
    do {
      let joined = try JSONDecoder().decode(Joined<Value>.self, from: bytes)
      return Value(head: joined.head, elements: joined.elements)
    } catch {
      return try JSONDecoder().decode(Value.self, from: bytes)
    }
  }
}

extension StoreSchema {
  /// Migrates a value of an older schema, step by step.
  fileprivate func migrate<Value>(
    _ bytes: Data, from version: Int, decode: (Data) throws -> Value
  ) -> DecodedValue<Value> {
    var bytes = bytes
    var version = version
    do {
      for migration in migrations[(version - 1)...] {
        version = migration.version
        bytes = try migration.migrate(bytes)
      }
      // The counts are unknown, so the next save writes all parts anew.
      return .value(try decode(bytes), counts: nil)
    } catch {
      // A result that can't be decoded is the fault of the last step.
      return .unmigratable(MigrationFailure(version: version, reason: String(describing: error)))
    }
  }
}

/// Any value, for a removal that doesn't know the type of what it removes.
struct UntypedValue: Codable {}

/// Takes all values of known formats for good, whatever their schema.
private struct UntypedFormat: ValueFormat {
  let schema = StoreSchema.any

  func encode(
    _ value: UntypedValue, over stored: StoredParts<UntypedValue>?, readPart: (_ id: String) -> Data?
  ) throws -> EncodedValue {
    preconditionFailure("An untyped value is never saved.")
  }

  func decode(_ header: Envelope.Header, body: Data, parts: [Data]) -> DecodedValue<UntypedValue> {
    .value(UntypedValue(), counts: nil)
  }
}
