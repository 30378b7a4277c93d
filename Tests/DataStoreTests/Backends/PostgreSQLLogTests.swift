#if PostgreSQL
  import Testing

  @testable import DataStore

  @Suite struct PostgreSQLLogTests {
    /// A log that was read up to the change with the number 5.
    private var log = PostgreSQLLog()

    init() {
      log.begin(at: 5)
    }

    /// Returns rows of changes that have each taken one number.
    ///
    /// A change without a name is the backend's own.
    private func rows(_ changes: [(id: Int64, name: String?)]) -> [PostgreSQLLog.Row] {
      changes.map { PostgreSQLLog.Row(id: $0.id, previous: $0.id - 1, name: $0.name) }
    }

    @Test mutating func `A backend's own changes are not external`() {
      let version = log.version
      let hasExternalChange = log.record(rows([(5, nil), (6, nil), (7, nil)]))
      #expect(!hasExternalChange)
      #expect(log.newest == 7)
      log.advance(to: 8)
      #expect(log.newest == 8)
      #expect(log.version == version)
      let report = log.takeReport()
      #expect(report == .names([]))
    }

    @Test mutating func `Changes of other writers are reported once, in order, and change the version`() {
      let version = log.version
      let firstHasExternalChange = log.record(rows([(5, "known"), (6, "a"), (7, nil)]))
      #expect(firstHasExternalChange)
      // No change was missed, because the log still contains the last known one, 7. A failed transaction took 8.
      let secondHasExternalChange = log.record(rows([(7, nil), (9, "b")]))
      #expect(secondHasExternalChange)
      #expect(log.version == version + 2)
      let report = log.takeReport()
      #expect(report == .names(["a", "b"]))
      let nextReport = log.takeReport()
      #expect(nextReport == .names([]))
    }

    @Test(arguments: [[], [(6, nil), (7, nil)], [(2, nil)]] as [[(Int64, String?)]])
    mutating func `The report is unknown if the log lacks the last change that was read`(changes: [(Int64, String?)]) {
      // Change 5 itself must be in the log. It isn't enough that the log continues with change 6.
      let version = log.version
      let hasExternalChange = log.record(rows(changes))
      #expect(hasExternalChange)
      #expect(log.newest == changes.last?.0 ?? 0)
      #expect(log.version == version + 1)
      let report = log.takeReport()
      #expect(report == .unknown)
    }

    @Test mutating func `A backend's own changes in a log that was empty are not external`() {
      log.begin(at: 0)
      let firstHasExternalChange = log.record([])
      #expect(!firstHasExternalChange)
      // The first change has taken the numbers 1 and 2, so none was missed.
      let secondHasExternalChange = log.record([
        PostgreSQLLog.Row(id: 2, previous: 0), PostgreSQLLog.Row(id: 3, previous: 2),
      ])
      #expect(!secondHasExternalChange)
      #expect(log.newest == 3)
    }

    @Test mutating func `The report is unknown if the log was empty and has been truncated since`() {
      log.begin(at: 0)
      let hasExternalChange = log.record(rows([(2, nil), (3, "a")]))
      #expect(hasExternalChange)
      #expect(log.newest == 3)
      let report = log.takeReport()
      #expect(report == .unknown)
    }

    @Test mutating func `A change that may affect any name is reported as unknown once`() {
      let version = log.version
      let unknownRow = PostgreSQLLog.Row(id: 6, previous: 5, isUnknown: true)
      let hasExternalChange = log.record(rows([(5, nil)]) + [unknownRow] + rows([(7, "a")]))
      #expect(hasExternalChange)
      #expect(log.version == version + 1)
      let report = log.takeReport()
      #expect(report == .unknown)
      // The change was reported, and the log contains no new one.
      let secondHasExternalChange = log.record(rows([(7, "a")]))
      #expect(!secondHasExternalChange)
      let secondReport = log.takeReport()
      #expect(secondReport == .names([]))
      // The unknown row is now the last known change, so it isn't new.
      log.begin(at: 6)
      let thirdHasExternalChange = log.record([unknownRow])
      #expect(!thirdHasExternalChange)
      let thirdReport = log.takeReport()
      #expect(thirdReport == .names([]))
    }

    @Test mutating func `After a lost connection the position in the log is set anew, and the report is unknown`() {
      let version = log.version
      log.recordConnectionLoss()
      #expect(log.newest == nil)
      log.begin(at: 5)
      #expect(log.version > version)
      let report = log.takeReport()
      #expect(report == .unknown)
    }

    @Test mutating func `A version isn't used again after a failed transaction`() {
      let before = log
      let hasExternalChange = log.record(rows([(5, nil), (6, "a")]))
      #expect(hasExternalChange)
      let usedVersion = log.version
      log.rollBack(to: before)
      #expect(log.newest == 5)
      let report = log.takeReport()
      #expect(report == .names([]))
      let hasExternalChangeAgain = log.record(rows([(5, nil), (6, "a"), (7, "a")]))
      #expect(hasExternalChangeAgain)
      #expect(log.version > usedVersion)
    }
  }
#endif
