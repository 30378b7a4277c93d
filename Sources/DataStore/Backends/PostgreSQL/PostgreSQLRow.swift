#if PostgreSQL
  internal import CPostgreSQL
  internal import Foundation

  /// A row of a result, which is valid as long as the result is.
  ///
  /// The columns are in PostgreSQL's binary format: an integer is big-endian, and a Boolean value is one byte.
  struct PostgreSQLRow {
    private let result: OpaquePointer
    private let number: CInt

    init(_ result: OpaquePointer, number: CInt) {
      (self.result, self.number) = (result, number)
    }

    func bytes(_ column: CInt) -> Data { Data(field(column)) }

    func text(_ column: CInt) -> String { String(decoding: field(column), as: UTF8.self) }

    func integer(_ column: CInt) -> Int64 { field(column).reduce(0) { $0 << 8 | Int64($1) } }

    func bool(_ column: CInt) -> Bool { field(column).first == 1 }

    /// The text, or `nil` for `NULL`.
    func optionalText(_ column: CInt) -> String? { isNull(column) ? nil : text(column) }

    /// The Boolean value, or `nil` for `NULL`.
    func optionalBool(_ column: CInt) -> Bool? { isNull(column) ? nil : bool(column) }

    /// The bytes of a column in libpq's memory, none for `NULL`.
    private func field(_ column: CInt) -> UnsafeRawBufferPointer {
      guard let start = PQgetvalue(result, number, column) else { return UnsafeRawBufferPointer(start: nil, count: 0) }
      return UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result, number, column)))
    }

    private func isNull(_ column: CInt) -> Bool { PQgetisnull(result, number, column) == 1 }
  }
#endif
