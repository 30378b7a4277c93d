#if PostgreSQL
  internal import Foundation

  /// The values and parts that a transaction stores and removes, sent in one statement.
  struct PostgreSQLChange {
    /// The maximum number of bytes of a change.
    ///
    /// The server accepts messages of up to 1,073,741,822 bytes, and arrays that are slightly smaller. The limit leaves
    /// room for the headers of both. Without a limit, the server would end the connection, and the same message would
    /// be sent again.
    static let byteLimit = 1_000_000_000

    private var values = Rows()
    private var parts = Rows()

    mutating func write(_ write: StoreWrite) {
      if StorePartName.isPart(write.name) {
        parts.store(write.bytes, as: write.name)
      } else {
        values.store(write.bytes, as: write.name)
      }
    }

    mutating func remove(_ name: String) {
      if StorePartName.isPart(name) { parts.remove(name) } else { values.remove(name) }
    }

    /// The size of the change in the server's memory: all names and bytes, and 8 bytes for each of them.
    var byteCount: Int { values.byteCount + parts.byteCount }

    /// The parameters of ``PostgreSQLLayout/commit`` that describe the change.
    var parameters: [PostgreSQLConnection.Parameter] {
      [
        .texts(values.names), .byteStrings(values.bytes), .texts(parts.names), .byteStrings(parts.bytes),
        .texts(values.removed), .texts(parts.removed),
      ]
    }

    /// The rows of one table.
    ///
    /// The server makes the removals first, so a name that is both removed and stored is stored.
    private struct Rows {
      private(set) var names: [String] = []
      private(set) var bytes: [Data] = []
      private(set) var removed: [String] = []
      private var indices: [String: Int] = [:]

      /// - Complexity: O(*n*), where *n* is the number of names.
      var byteCount: Int {
        (names + removed).reduce(0) { $0 + 8 + $1.utf8.count } + bytes.reduce(0) { $0 + 8 + $1.count }
      }

      mutating func store(_ value: Data, as name: String) {
        if let index = indices[name] {
          bytes[index] = value
        } else {
          indices[name] = names.count
          names.append(name)
          bytes.append(value)
        }
      }

      mutating func remove(_ name: String) {
        removed.append(name)
      }
    }
  }
#endif
