internal import Foundation
internal import GRDB

/// A table in GRDB with one row for each element of a list.
struct ItemTable: Sendable {
  private struct ItemRow: Codable, FetchableRecord, PersistableRecord {
    static let databaseTableName = "item"

    var id: Int
    var title: String
    var note: String
    var author: String
    var place: String
    var link: String
    var state: String
    var isDone: Bool

    init(_ item: Item) {
      (id, title, note, author) = (item.id, item.title, item.note, item.author)
      (place, link, state, isDone) = (item.place, item.link, item.state, item.isDone)
    }
  }

  private let pool: DatabasePool

  /// Creates a database in a folder, with the table of a list.
  init(_ items: [Item], in folder: URL) throws {
    pool = try DatabasePool.durable(in: folder)
    try pool.write { database in
      try database.create(table: ItemRow.databaseTableName) { table in
        table.primaryKey("id", .integer)
        for column in ["title", "note", "author", "place", "link", "state"] { table.column(column, .text).notNull() }
        table.column("isDone", .boolean).notNull()
      }
      for item in items { try ItemRow(item).insert(database) }
    }
  }

  /// Updates the row of an element.
  func update(_ item: Item) async throws {
    try await pool.write { try ItemRow(item).update($0) }
  }

  /// Returns whether the row of an element has the element's state.
  func hasState(of item: Item) async throws -> Bool {
    try await pool.read { try ItemRow.fetchOne($0, key: item.id)?.state } == item.state
  }
}
