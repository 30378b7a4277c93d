internal import BenchmarkKit

/// A limit for the ratio of two figures.
struct Goal: Codable, CustomStringConvertible {
  let text: String
  let ratio: Double
  let limit: Double
  let isMet: Bool

  private init(_ text: String, ratio: Double, limit: Double) {
    self.text = text
    self.ratio = ratio
    self.limit = limit
    isMet = ratio <= limit
  }

  var description: String {
    "\(isMet ? "met    " : "NOT met")  \(text): \(Table.number(ratio)) ≤ \(Table.number(limit))"
  }

  /// Returns the goals whose figures were measured.
  static func all(in results: [ComparisonResult<Setting>]) -> [Goal] {
    let (sqlite, grdb) = (SystemName.sqlite.label, SystemName.grdb.label)
    let sqliteInParts = ChangeOne.label(.sqlite, .parts)
    let (shortListLabel, longListLabel) = (ChangeOne.sizeLabel(100), ChangeOne.sizeLabel(10_000))

    // A row's first figure is the time of one operation.
    func median(_ row: Row, _ system: String, variant: String? = nil) -> Double? {
      results.first { $0.setting == Setting(row: row, variant: variant) }?
        .systems.first { $0.system == system }?.figures.first?.median
    }

    func goal(_ text: String, _ figure: Double?, dividedBy base: Double?, atMost limit: Double) -> Goal? {
      guard let figure, let base else { return nil }
      return Goal(text, ratio: figure / base, limit: limit)
    }

    return [
      goal(
        "save, SQLiteStore ÷ GRDB",
        median(.save, sqlite), dividedBy: median(.save, grdb), atMost: 1),
      goal(
        "save, FileStore ÷ by hand",
        median(.save, SystemName.file.label), dividedBy: median(.save, Save.byHandLabel), atMost: 1.5),
      goal(
        "burst-keys, SQLiteStore ÷ GRDB",
        median(.burstKeys, sqlite), dividedBy: median(.burstKeys, grdb), atMost: 1.0 / 5),
      goal(
        "load-known, SQLiteStore ÷ GRDB",
        median(.loadKnown, sqlite), dividedBy: median(.loadKnown, grdb), atMost: 1.0 / 5),
      goal(
        "observe, SQLiteStore ÷ GRDB",
        median(.observe, sqlite), dividedBy: median(.observe, grdb), atMost: 1.0 / 2),
      goal(
        "change-one, SQLiteStore in parts, 10,000 elements ÷ 100 elements",
        median(.changeOne, sqliteInParts, variant: longListLabel),
        dividedBy: median(.changeOne, sqliteInParts, variant: shortListLabel), atMost: 3),
      goal(
        "change-one, 10,000 elements, SQLiteStore in parts ÷ GRDB (updates one row)",
        median(.changeOne, sqliteInParts, variant: longListLabel),
        dividedBy: median(.changeOne, ChangeOne.grdbLabel, variant: longListLabel), atMost: 3),
      goal(
        "server-save, PostgreSQLStore ÷ by hand",
        median(.serverSave, Server.storeLabel), dividedBy: median(.serverSave, Server.byHandLabel), atMost: 1.3),
      goal(
        "server-burst, PostgreSQLStore ÷ by hand",
        median(.serverBurst, Server.storeLabel), dividedBy: median(.serverBurst, Server.byHandLabel), atMost: 1.0 / 5),
    ].compactMap(\.self)
  }
}
