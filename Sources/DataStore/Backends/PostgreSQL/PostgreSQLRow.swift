#if PostgreSQL
  internal import CPostgreSQL
  internal import Foundation

  /// A row of a result, which is valid as long as the result is.
  struct PostgreSQLRow {
    private let result: OpaquePointer
    private let number: CInt

    init(_ result: OpaquePointer, number: CInt) {
      (self.result, self.number) = (result, number)
    }

    func bytes(_ column: CInt) -> Data {
      guard let start = PQgetvalue(result, number, column) else { return Data() }
      return Data(bytes: start, count: Int(PQgetlength(result, number, column)))
    }

    func text(_ column: CInt) -> String { String(decoding: bytes(column), as: UTF8.self) }

    func integer(_ column: CInt) -> Int64 { bytes(column).reduce(0) { $0 << 8 | Int64($1) } }

    func bool(_ column: CInt) -> Bool { bytes(column).first == 1 }

    /// The text, or `nil` for `NULL`.
    func optionalText(_ column: CInt) -> String? { isNull(column) ? nil : text(column) }

    /// The Boolean value, or `nil` for `NULL`.
    func optionalBool(_ column: CInt) -> Bool? { isNull(column) ? nil : bool(column) }

    private func isNull(_ column: CInt) -> Bool { PQgetisnull(result, number, column) == 1 }
  }
#endif
