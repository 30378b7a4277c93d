#if PostgreSQL
  internal import Foundation

  /// A parameter of a statement.
  enum PostgreSQLParameter {
    case integer(Int64?)
    case text(String)
    case bytes(Data)
    case texts([String])
    case byteStrings([Data])

    /// The parameter in PostgreSQL's binary format; `nil` for `NULL`.
    var bytes: Data? {
      switch self {
      case .integer(let number): number.map { Self.bigEndian($0) }
      case .text(let text): Data(text.utf8)
      case .bytes(let bytes): bytes
      // In `pg_type`, 25 is `text` and 17 is `bytea`.
      case .texts(let texts): Self.array(texts.map { Data($0.utf8) }, ofType: 25)
      case .byteStrings(let values): Self.array(values, ofType: 17)
      }
    }

    /// Returns an array of one dimension in PostgreSQL's binary format.
    ///
    /// The format begins with the number of dimensions, a flag for nulls, and the number of the elements' type in
    /// `pg_type`. The length and the lower bound of the dimension follow, and then each element, preceded by its
    /// length. An empty array has no dimension. See `array_recv` in PostgreSQL's source.
    private static func array(_ elements: [Data], ofType type: Int32) -> Data {
      var bytes = Data(capacity: 20 + elements.reduce(0) { $0 + 4 + $1.count })
      for field in [elements.isEmpty ? 0 : 1, 0, type] { bytes += bigEndian(field) }
      if elements.isEmpty { return bytes }
      for field in [Int32(elements.count), 1] { bytes += bigEndian(field) }
      for element in elements {
        bytes += bigEndian(Int32(element.count))
        bytes += element
      }
      return bytes
    }

    private static func bigEndian(_ number: some FixedWidthInteger) -> Data {
      withUnsafeBytes(of: number.bigEndian) { Data($0) }
    }
  }
#endif
