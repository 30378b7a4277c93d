#if PostgreSQL
  internal import Foundation

  /// The values and parts that a transaction stores and removes, sent in one statement.
  struct PostgreSQLChange {
    /// The maximum number of bytes of a change.
    ///
    /// The server accepts messages of up to 1,073,741,822 bytes, and arrays that are slightly smaller. The limit leaves
    /// room for the headers of both. If a larger message were sent, the server would end the connection, and the
    /// backend would connect and send the message again.
    static let byteLimit = 1_000_000_000

    private var values = Rows()
    private var parts = Rows()

    /// The bytes to quarantine, which aren't a part of ``statement``.
    private(set) var quarantined: [(key: String, time: String, bytes: Data)] = []

    mutating func write(_ write: StoreWrite) {
      if let quarantine = QuarantineName(write.name) {
        quarantined.append((quarantine.encodedKey, quarantine.time, write.bytes))
      } else if StorePartName.isPart(write.name) {
        parts.store(write.bytes, as: write.name)
      } else {
        values.store(write.bytes, as: write.name)
      }
    }

    mutating func remove(_ name: String) {
      if StorePartName.isPart(name) { parts.remove(name) } else { values.remove(name) }
    }

    /// The size of the change in the server's memory: all names, values and parts, and 8 more bytes for each of them.
    var byteCount: Int { values.byteCount + parts.byteCount }

    var isEmpty: Bool { statement.isEmpty }

    /// The maximum number of names that the change adds to the log of changes.
    ///
    /// A part adds none, nor does the removal of a value that doesn't exist.
    var nameCount: Int { values.names.count + values.removed.count }

    /// The statement that makes the change.
    var statement: PostgreSQLCommitStatement {
      var steps: PostgreSQLCommitStatement = []
      if !values.names.isEmpty { steps.insert(values.names.count == 1 ? .storeValue : .storeValues) }
      if !parts.names.isEmpty { steps.insert(.storeParts) }
      if !values.removed.isEmpty { steps.insert(.removeValues) }
      if !parts.removed.isEmpty { steps.insert(.removeParts) }
      return steps
    }

    /// The parameters for the steps of ``statement``.
    var parameters: [PostgreSQLParameter] {
      let steps = statement
      var parameters: [PostgreSQLParameter] = []
      if steps.contains(.storeValue) { parameters += [.text(values.names[0]), .bytes(values.bytes[0])] }
      if steps.contains(.storeValues) { parameters += [.texts(values.names), .byteStrings(values.bytes)] }
      if steps.contains(.storeParts) { parameters += [.texts(parts.names), .byteStrings(parts.bytes)] }
      if steps.contains(.removeValues) { parameters.append(.texts(values.removed)) }
      if steps.contains(.removeParts) { parameters.append(.texts(parts.removed)) }
      return parameters
    }

    /// The rows of one table.
    ///
    /// A name that is both removed and stored is stored.
    private struct Rows {
      private(set) var names: [String] = []
      private(set) var bytes: [Data] = []
      private var indices: [String: Int] = [:]
      private var removals: [String] = []

      /// The names to remove.
      ///
      /// A statement must not change a row twice, so the names that are stored too are left out.
      var removed: [String] { removals.filter { indices[$0] == nil } }

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
        removals.append(name)
      }
    }
  }
#endif
