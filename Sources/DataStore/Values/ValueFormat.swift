internal import Foundation

/// The encoding and decoding of the values of one type.
protocol ValueFormat<Value>: Sendable {
  associatedtype Value: Codable & Sendable

  /// The schema in which values are encoded.
  var schema: StoreSchema { get }

  /// Encodes a value.
  ///
  /// - Parameters:
  ///   - value: The value to encode.
  ///   - stored: The stored value, if it is in memory. Its unchanged parts are kept.
  ///   - readPart: Returns the bytes of a stored part, or `nil` if they can't be read.
  /// - Throws: The error of the value's `encode(to:)`, or `EncodingError` if JSON can't represent the value.
  func encode(
    _ value: Value, over stored: StoredParts<Value>?, readPart: (_ id: String) -> Data?
  ) throws -> EncodedValue

  /// Decodes a value, and migrates it if it is of an older schema.
  ///
  /// - Parameters:
  ///   - header: The header of the value's envelope.
  ///   - body: The bytes after the header.
  ///   - parts: The bytes of the parts that the header lists, in order.
  func decode(_ header: Envelope.Header, body: Data, parts: [Data]) -> DecodedValue<Value>
}

/// A stored value, and its division into parts.
struct StoredParts<Value> {
  let value: Value
  /// The ids of the parts, in order.
  let ids: [String]
  /// The number of elements in each part.
  let counts: [Int]
}

/// The bytes of an encoded value, without its header.
struct EncodedValue {
  /// The bytes of the whole value, or those of the head of a value in parts.
  let body: Data
  /// The ids of all parts of the value, in order; `nil` for a value that is stored whole.
  let partIDs: [String]?
  /// The number of elements in each part.
  let counts: [Int]
  /// The parts that aren't stored yet.
  let newParts: [(id: String, bytes: Data)]
}

/// The result of decoding a value.
enum DecodedValue<Value> {
  /// A value, with the number of elements in each part; `nil` if that is unknown or the value is stored whole.
  case value(Value, counts: [Int]?)
  case unusable(UnusableReason)
}

/// Returns the format of a type: untyped for ``UntypedValue``, in parts for a ``PartitionedValue``, otherwise whole.
func makeValueFormat<Value: Codable & Sendable>(of type: Value.Type) -> any ValueFormat<Value> {
  func makePartitionedFormat<Partitioned: PartitionedValue>(of type: Partitioned.Type) -> any ValueFormat {
    PartitionedFormat<Partitioned>()
  }
  if type == UntypedValue.self, let format = UntypedFormat() as? any ValueFormat<Value> { return format }
  if let type = type as? any PartitionedValue.Type,
    let format = makePartitionedFormat(of: type) as? any ValueFormat<Value>
  {
    return format
  }
  return WholeFormat<Value>()
}

/// Encodes a value as one JSON text.
private struct WholeFormat<Value: Codable & Sendable>: ValueFormat {
  let schema = StoreSchema.of(Value.self)

  func encode(
    _ value: Value, over stored: StoredParts<Value>?, readPart: (_ id: String) -> Data?
  ) throws -> EncodedValue {
    EncodedValue(body: try JSONEncoder.ofWholeValues.encode(value), partIDs: nil, counts: [], newParts: [])
  }

  func decode(_ header: Envelope.Header, body: Data, parts: [Data]) -> DecodedValue<Value> {
    let bytes = header.partIDs == nil ? body : PartitionedJSON.join(head: body, parts: parts)
    if header.schema < schema.version {
      return schema.migrate(bytes, from: header.schema) { try JSONDecoder().decode(Value.self, from: $0) }
    }
    guard header.partIDs == nil else {
      let reason = "the value was stored in parts, and there is no migration back to a whole value"
      return .unusable(.unmigratable(from: header.schema, reason: reason))
    }
    do {
      return .value(try JSONDecoder().decode(Value.self, from: body), counts: nil)
    } catch {
      return .unusable(.undecodable(reason: String(describing: error)))
    }
  }
}

/// Encodes the head of a value as one JSON text, and its elements in chunks, each as one part.
private struct PartitionedFormat<Value: PartitionedValue>: ValueFormat {
  let schema = StoreSchema.of(Value.self)

  func encode(
    _ value: Value, over stored: StoredParts<Value>?, readPart: (_ id: String) -> Data?
  ) throws -> EncodedValue {
    let encoder = JSONEncoder.withSortedKeys
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

  /// Encodes a chunk by reusing bytes of a stored one.
  ///
  /// - Returns: `nil` if no stored element is recognized, or the stored bytes are missing or corrupt.
  private func encode(
    _ elements: ArraySlice<Value.Element>, over stored: StoredParts<Value>, at index: Int,
    readPart: (_ id: String) -> Data?, _ encoder: JSONEncoder
  ) throws -> Data? {
    let (id, count) = (stored.ids[index], stored.counts[index])
    let start = stored.counts[..<index].reduce(0, +)
    let storedElements = stored.value.elements[start..<start + count]
    let difference = ChunkDifference(from: storedElements.span, to: elements.span, of: Value.self)
    // The checksum must be verified here, because otherwise corrupt bytes would be copied into a part with a correct
    // checksum.
    guard difference.usesStored, let bytes = readPart(id), PartID.matches(id, bytes),
      let array = JSONArray(bytes, count: count)
    else { return nil }
    return JSONArray.join(
      try difference.runs.map { run in
        switch run {
        case .stored(let range): array.elements(range)
        case .new(let range):
          // Encodes an array, and drops its brackets.
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
      // The type's initializer may drop or reorder elements that an older version of the program has stored. The stored
      // parts then don't match the value's elements.
      return .value(value, counts: Self.areEqual(value.elements, elements) ? chunks.map(\.count) : nil)
    } catch {
      return .unusable(.undecodable(reason: String(describing: error)))
    }
  }

  private static func areEqual(_ left: [Value.Element], _ right: [Value.Element]) -> Bool {
    left.count == right.count && Value.equalPrefixCount(of: left.span, and: right.span) == left.count
  }
}

/// The JSON of a value in parts as a single text: `{"elements":[…],"head":…}`.
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

  /// Decodes the result of a migration, which is either such a text or the JSON of the value stored whole.
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
    do {
      // Without the counts, the next save writes all parts.
      return .value(try decode(migrated(bytes, from: version)), counts: nil)
    } catch let error as MigrationError {
      return .unusable(.unmigratable(from: error.version, reason: error.reason))
    } catch {
      // If the result can't be decoded, the last migration is at fault.
      return .unusable(.unmigratable(from: self.version - 1, reason: String(describing: error)))
    }
  }
}

/// A value of any type, for a removal that doesn't know the type of the removed values.
struct UntypedValue: Codable {}

/// Accepts every value whose envelope and parts can be read, whatever its type and schema.
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
