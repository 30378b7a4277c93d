import DataStore
import Foundation
import Moments
import MomentsTesting
import Repository
import TerminalUI
import TestRounds
import Testing

@testable import MomentsCommand

struct TimelineScreenTests {
  private static let noon = Date(timeIntervalSince1970: 1_605_528_000)

  /// Returns a model of the demonstration's timeline, fetched just now.
  ///
  /// - Parameters:
  ///   - selection: The index of the selected row.
  ///   - change: A closure that changes the model before it is returned.
  private func model(
    selection: Int = 0, change: (inout TimelineScreen.Model) -> Void = { _ in }
  ) async throws -> TimelineScreen.Model {
    let backend = DemonstrationServer()
    let details = try await backend.getMoments(userID: "0")
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()), getMomentsByUserIDSession: backend,
      updateMomentLikeSession: backend)
    let rows = details.moments.map {
      TimelineScreen.Model.Row(
        MomentListItemViewModel(moment: $0, momentsRepo: repo, now: Self.noon, locale: TimelineText.locale))
    }
    let timeline = LiveTimelineState.Timeline(details: details, rows: rows, savedAt: Self.noon, hasMore: true)
    var state = LiveTimelineState(openedAt: Self.noon, canGoOffline: true)
    state.showDetail(LoadedValue(details, savedAt: Self.noon), at: Self.noon)
    state.counterTimeline = details
    for _ in 0..<selection { _ = state.press(.down, in: timeline) }
    state.activity = "The timeline is up to date."
    var model = state.model(of: timeline, at: Self.noon)
    change(&model)
    return model
  }

  private func lines(of model: TimelineScreen.Model, _ columns: Int, _ rows: Int) -> [String] {
    TimelineScreen.frame(of: model, size: TerminalSize(columns: columns, rows: rows)).lines
  }

  @Test func `The timeline screen fills 80×24`() async throws {
    let model = try await model(selection: 6)
    #expect(
      lines(of: model, 80, 24).joined(separator: "\n") == """
         Jake Lin  16 moments · 30 likes                                    fetched now
        ─────────────────────────────────────────────┬──────────────────────────────────
          ♥  Taylor Swift: the pic is awesome      1 │ Mei Zhou
          ·  Mattt: Low-level programming on iOS   1 │ 11 hours ago
          ♥  李晓雯: 周末去爬山,山顶的云海太美了   3 │
          ·  Ravi Menon: Structured concurrency…   2 │ ♥ 2 likes
          ♥  Amara Okafor: Nine hours of rain, …   4 │
          ·  Oskar Lindqvist: First ice on the …   1 │ Family day 👨‍👩‍👧‍👦 at the beach 🏖️🇦🇺
        ▸ ♥  Mei Zhou: Family day 👨‍👩‍👧‍👦 at the bea…   2 │ — sunscreen everywhere 🧴😂
          ·  Hanna Virtanen: Nobody has seen th…   0 │
          ·  王子昂: 新买的键盘终于到了!           2 │ 2 photos
          ♥  Ines Duarte: Pastéis de nata, thir…   4 │ beach-family.jpg
          ·  Mattt: A bug that only happens on …   1 │ beach-castle.jpg
          ·  陈静: 晨跑十公里,空气里有桂花的味道   1 │
          ♥  Ravi Menon                            2 │
          ·  Amara Okafor: The library extended…   2 │
          ·  Oskar Lindqvist: Sourdough no. 41     1 │
          ♥  Taylor Swift: Rehearsal notes         3 │
                                                     │
                                                     │
                                                     │
        ────────────────────────────────────── 7/16 ─┴──────────────────────────────────
         The timeline is up to date.
         q quit  j/k ↓/↑ move  l unlike  o go offline  r reload  m more
        """)
  }

  @Test func `The timeline screen fills 120×40, with the dates in the list`() async throws {
    let model = try await model(selection: 4)
    let lines = lines(of: model, 120, 40)
    #expect(lines.count == 40)
    #expect(lines[0] == " Jake Lin  16 moments · 30 likes" + String(repeating: " ", count: 76) + "fetched now")
    let halves = lines.filter { $0.contains(/[┬│┴]/) }.map { $0.split(separator: /[┬│┴]/).map(String.init) }
    #expect(halves.count == 37)
    #expect(Set(halves.map { TerminalText.width(of: $0[0]) }) == [68])
    #expect(
      halves.prefix(18).map { $0[0] }.joined(separator: "\n") == """
        ────────────────────────────────────────────────────────────────────
          ♥  Taylor Swift: the pic is awesome               2 hours ago   1 
          ·  Mattt: Low-level programming on iOS            2 hours ago   1 
          ♥  李晓雯: 周末去爬山,山顶的云海太美了            4 hours ago   3 
          ·  Ravi Menon: Structured concurrency, explai…    5 hours ago   2 
        ▸ ♥  Amara Okafor: Nine hours of rain, four min…    7 hours ago   4 
          ·  Oskar Lindqvist: First ice on the lake         9 hours ago   1 
          ♥  Mei Zhou: Family day 👨‍👩‍👧‍👦 at the beach 🏖️🇦🇺 …   11 hours ago   2 
          ·  Hanna Virtanen: Nobody has seen this one y…   13 hours ago   0 
          ·  王子昂: 新买的键盘终于到了!                   15 hours ago   2 
          ♥  Ines Duarte: Pastéis de nata, third attemp…   17 hours ago   4 
          ·  Mattt: A bug that only happens on the firs…   19 hours ago   1 
          ·  陈静: 晨跑十公里,空气里有桂花的味道           21 hours ago   1 
          ♥  Ravi Menon                                       1 day ago   2 
          ·  Amara Okafor: The library extended its ope…      1 day ago   2 
          ·  Oskar Lindqvist: Sourdough no. 41                1 day ago   1 
          ♥  Taylor Swift: Rehearsal notes                    1 day ago   3 
                                                                            
        """)
    #expect(
      halves.prefix(13).map { $0.count > 1 ? $0[1] : "" }.joined(separator: "\n") == """
        ───────────────────────────────────────────────────
         Amara Okafor
         7 hours ago

         ♥ 4 likes

         Nine hours of rain, four minutes of sun

         4 photos
         rain-window.jpg
         wet-street.jpg
         sun-at-last.jpg
         rainbow.jpg
        """)
    #expect(halves.last?[0] == String(repeating: "─", count: 61) + " 5/16 ─")
    #expect(lines[38] == " The timeline is up to date.")
  }

  @Test func `On a narrow terminal, the detail is below the list`() async throws {
    let model = try await model(selection: 2)
    #expect(
      lines(of: model, 50, 20).joined(separator: "\n") == """
         Jake Lin  16 moments · 30 likes      fetched now
        ──────────────────────────────────────────────────
          ♥  Taylor Swift: the pic is awesome           1
          ·  Mattt: Low-level programming on iOS        1
        ▸ ♥  李晓雯: 周末去爬山,山顶的云海太美了        3
          ·  Ravi Menon: Structured concurrency, exp…   2
          ♥  Amara Okafor: Nine hours of rain, four …   4
          ·  Oskar Lindqvist: First ice on the lake     1
          ♥  Mei Zhou: Family day 👨‍👩‍👧‍👦 at the beach 🏖️…   2
          ·  Hanna Virtanen: Nobody has seen this on…   0
        ─────────────────────────────────────────── 3/16 ─
         李晓雯
         4 hours ago
         ♥ 3 likes
         周末去爬山,山顶的云海太美了
         3 photos
         cloud-sea-1.jpg
        ──────────────────────────────────────────────────
         The timeline is up to date.
         q quit  j/k ↓/↑ move  l unlike  o go offline
        """)
  }

  @Test func `On a narrow and low terminal, only the list is shown`() async throws {
    let model = try await model(selection: 9)
    #expect(
      lines(of: model, 44, 12).joined(separator: "\n") == """
         Jake Lin                       fetched now
        ────────────────────────────────────────────
          ♥  Mei Zhou: Family day 👨‍👩‍👧‍👦 at the be…   2
          ·  Hanna Virtanen: Nobody has seen t…   0
          ·  王子昂: 新买的键盘终于到了!          2
        ▸ ♥  Ines Duarte: Pastéis de nata, thi…   4
          ·  Mattt: A bug that only happens on…   1
          ·  陈静: 晨跑十公里,空气里有桂花的味…   1
          ♥  Ravi Menon                           2
        ──────────────────────────────────── 10/16 ─
         The timeline is up to date.
         q quit  j/k ↓/↑ move  l unlike
        """)
  }

  // MARK: States

  @Test func `The header shows the age, the pending likes, the load and the offline state`() async throws {
    let model = try await model { model in
      model.source = .stored(age: "5 minutes ago")
      model.pendingCount = 2
      model.isLoading = true
      model.isOnline = false
    }
    #expect(
      lines(of: model, 80, 24)[0] == " Jake Lin                 stored 5 minutes ago · 2 pending · loading… · offline")
    #expect(
      lines(of: model, 110, 24)[0]
        == " Jake Lin  16 moments · 30 likes                        stored 5 minutes ago · 2 pending · loading… · offline"
    )
  }

  @Test func `A failed load is shown in the header while the old timeline stays`() async throws {
    let model = try await model { $0.problem = "The server could not be reached." }
    let lines = lines(of: model, 80, 24)
    #expect(lines[0].hasSuffix("fetched now · failed"))
    #expect(lines[2].hasPrefix("▸ ♥  Taylor Swift"))
  }

  @Test func `An empty timeline screen shows the reason`() {
    let placeholder = { (model: TimelineScreen.Model) in
      self.lines(of: model, 80, 24)[3].prefix { $0 != "│" }.trimmingCharacters(in: .whitespaces)
    }
    #expect(placeholder(.init(isRead: false)) == "Loading…")
    #expect(placeholder(.init(isLoading: true)) == "Nothing is stored yet. Loading…")
    #expect(placeholder(.init(problem: "The server refused.")) == "The server refused.")
    #expect(placeholder(.init(source: .fetched(age: "now"))) == "There are no moments.")
    // While the user's name is unknown, the header has this title.
    #expect(lines(of: .init(), 80, 24)[0] == " Moments")
  }

  @Test func `A pending like is marked in the list and in the detail`() async throws {
    let model = try await model(selection: 1) { model in
      model.rows[1].isPending = true
      model.detail?.row.isPending = true
    }
    let lines = lines(of: model, 80, 24)
    #expect(lines[3].hasPrefix("▸ ·… Mattt: Low-level"))
    #expect(lines[6].hasSuffix("│ … waiting for the server"))
  }

  @Test func `The selected row is highlighted up to the divider, even without colors`() async throws {
    let frame = TimelineScreen.frame(of: try await model(selection: 2), size: TerminalSize(columns: 80, rows: 24))
    let isInverseByColumn = { (row: Int) in frame[row: row].map { $0.style.attributes.contains(.inverse) } }
    #expect(isInverseByColumn(4) == [false] + Array(repeating: true, count: 44) + Array(repeating: false, count: 35))
    #expect(isInverseByColumn(3) == Array(repeating: false, count: 80))
  }

  // MARK: Scrolling

  @Test(arguments: [
    (16, 0, 19, 0..<16), (16, 15, 19, 0..<16), (16, 0, 5, 0..<5), (16, 2, 5, 0..<5), (16, 3, 5, 1..<6),
    (16, 13, 5, 11..<16), (16, 15, 5, 11..<16), (0, 0, 5, 0..<0), (3, 1, 0, 1..<1),
  ])
  func `The list scrolls to center the selected row, unless that would leave lines blank`(
    count: Int, selection: Int, height: Int, expected: Range<Int>
  ) {
    #expect(ListAndDetail.visibleRows(count: count, selection: selection, height: height) == expected)
  }

  // MARK: Sizes

  @Test func `Below the minimum size, only a message is shown`() async throws {
    let model = try await model()
    #expect(lines(of: model, 39, 10).prefix(3) == ["Too small: 39×10", "Needs 40×10", "q quit"])
    #expect(lines(of: model, 40, 9).prefix(1) == ["Too small: 40×9"])
    #expect(lines(of: model, 5, 2) == ["Too s", "Needs"])
    #expect(lines(of: model, 1, 1) == ["T"])
    #expect(lines(of: model, 0, 0) == [])
    #expect(lines(of: model, 40, 10)[0].hasPrefix(" Jake Lin"))
  }

  @Test func `At every size, no line of the timeline screen is wider than the terminal`() async throws {
    let model = try await model(selection: 6)
    for columns in stride(from: 0, to: 130, by: Rounds.step(3)) {
      for rows in [0, 1, 9, 10, 11, 17, 18, 24, 40] {
        let frame = TimelineScreen.frame(of: model, size: TerminalSize(columns: columns, rows: rows))
        #expect(frame.lines.allSatisfy { TerminalText.width(of: $0) <= columns })
      }
    }
  }

  @Test func `Hints that do not fit are left out, starting with the last`() async throws {
    let model = try await model()
    #expect(
      lines(of: model, 80, 24)[23] == " q quit  j/k ↓/↑ move  l unlike  o go offline  r reload  m more")
    #expect(lines(of: model, 40, 24)[23] == " q quit  j/k ↓/↑ move  l unlike")
  }
}
