#if PostgreSQL
  internal import Foundation

  /// A parameter of a statement.
  enum PostgreSQLParameter {
    case integer(Int64?)
    case text(String)
    case bytes(Data)
    case texts([String])
    case byteStrings([Data])

    var isNull: Bool {
      if case .integer(nil) = self { true } else { false }
    }

    /// The number of bytes of the parameter in PostgreSQL's binary format.
    ///
    /// - Complexity: O(*n*), where *n* is the number of elements of an array.
    var byteCount: Int {
      // An empty array has 12 bytes; otherwise 20 bytes precede the elements. See `append(_:ofType:to:)`.
      switch self {
      case .integer(let number): number == nil ? 0 : 8
      case .text(let text): text.utf8.count
      case .bytes(let bytes): bytes.count
      case .texts(let texts): texts.reduce(texts.isEmpty ? 12 : 20) { $0 + 4 + $1.utf8.count }
      case .byteStrings(let byteStrings): byteStrings.reduce(byteStrings.isEmpty ? 12 : 20) { $0 + 4 + $1.count }
      }
    }

    /// Appends the parameter in PostgreSQL's binary format; nothing for `NULL`.
    func append(to buffer: inout [UInt8]) {
      switch self {
      case .integer(let number): if let number { Self.append(number, to: &buffer) }
      case .text(let text): buffer += text.utf8
      case .bytes(let bytes): buffer += bytes
      // In `pg_type`, 25 is the OID of `text`, and 17 that of `bytea`.
      case .texts(let texts): Self.append(texts.map { $0.utf8 }, ofType: 25, to: &buffer)
      case .byteStrings(let byteStrings): Self.append(byteStrings, ofType: 17, to: &buffer)
      }
    }

    /// Appends an array of one dimension in PostgreSQL's binary format.
    ///
    /// The format begins with the number of dimensions, a flag for nulls, and the OID of the elements' type. The length
    /// and the lower bound of the dimension follow, and then each element, preceded by its length. An empty array has
    /// no dimension. See `array_recv` in PostgreSQL's source.
    private static func append<Element: Collection<UInt8>>(
      _ elements: [Element], ofType type: Int32, to buffer: inout [UInt8]
    ) {
      for field in [elements.isEmpty ? 0 : 1, 0, type] { append(field, to: &buffer) }
      if elements.isEmpty { return }
      for field in [Int32(elements.count), 1] { append(field, to: &buffer) }
      for element in elements {
        append(Int32(element.count), to: &buffer)
        buffer += element
      }
    }

    private static func append(_ number: some FixedWidthInteger, to buffer: inout [UInt8]) {
      withUnsafeBytes(of: number.bigEndian) { buffer += $0 }
    }
  }
#endif
