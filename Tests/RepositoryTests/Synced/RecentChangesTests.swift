import Testing

@testable import Repository

@Suite struct RecentChangesTests {
  @Test func `A value is joined with the changes since its request, unless one was dropped or can't be repeated`() {
    var versions = VersionBarriers()
    var changes = RecentChanges<Set<Int>>()
    let first = versions.now()
    changes.append(at: versions.now()) { $0.union([-1]) }
    #expect(changes.applied(to: [], since: first) == [], "Without a fetch in flight, nothing is recorded.")
    changes.beginFetch(at: first, .init(value: [0], fetched: nil))
    changes.append(at: versions.now()) { $0.union([1]) }
    #expect(changes.base(at: first)?.value == [0])
    #expect(changes.applied(to: [0], since: first) == [0, 1])
    for number in 2...600 { changes.append(at: versions.now()) { $0.union([number]) } }
    #expect(changes.applied(to: [0], since: first) == nil)

    let second = versions.now()
    changes.beginFetch(at: second, .init(value: nil, fetched: nil))
    changes.append(at: versions.now()) { $0.union([601]) }
    #expect(changes.applied(to: [], since: second) == [601])
    let earlier = changes
    changes.append(at: versions.now()) { Set($0.map { $0 + 1 }) }
    #expect(changes.applied(to: [], since: second) == nil)
    changes.restoreChanges(of: earlier)
    #expect(changes.applied(to: [], since: second) == [601])
    changes.append(at: versions.now()) { $0.contains(7) ? $0 : nil }
    #expect(changes.applied(to: [], since: second) == nil)
    for request in [first, second] { changes.endFetch(at: request) }
    #expect(changes.applied(to: [], since: second) == [])
  }
}
