internal import DataStore
internal import Foundation
internal import MulticastTesting
public import Repository

extension RepositoryConformance where Source: BidirectionalPagedSource {
  /// The checks for sources whose pages are fetched in both directions, in addition to ``checks``.
  ///
  /// The initial value of the harness must have at least three elements. The source must fetch the pages that
  /// ``InMemoryServer/bidirectionalPage(of:after:limit:)`` and ``InMemoryServer/bidirectionalPage(of:before:limit:)``
  /// return.
  public static var pagingChecks: [Check] {
    [
      Check("Pages", "The stored elements are always a contiguous part of the server's list", body: checkPages)
    ]
  }

  /// Scrolls at random, before and after a relaunch, over a network that loses and duplicates packets.
  @Sendable private static func checkPages(_ harness: RepositoryHarness<Source>) async throws {
    let bench = Bench(harness, seed: 1, .rough)
    let openStore = try await harness.makePlace()
    var random = SplitMix64(seed: 1)
    try await bench.whileNetworkRuns {
      for _ in 1...2 {
        let store = try await openStore()
        let repository = bench.makeScrollingRepository(store)
        try await bench.load(repository)
        // Loads more until the newest element is no longer stored.
        var hasPreviousPage = false
        repeat {
          try await bench.scroll(repository, step: loadMoreStep)
          hasPreviousPage = try await bench.checkContiguity(in: store)
        } while !hasPreviousPage
        for _ in 1...8 {
          try await bench.scroll(repository, step: .random(in: 0..<8, using: &random))
          _ = try await bench.checkContiguity(in: store)
        }
      }
    }
  }
}

/// A step of `scroll(_:step:)` that loads more.
private let loadMoreStep = 7

extension RepositoryConformance.Bench where Source: BidirectionalPagedSource {
  /// Creates a repository that keeps two pages of one element each.
  fileprivate func makeScrollingRepository(_ store: any KeyValueStore) -> SyncedRepository<Source> {
    SyncedRepository(
      harness.makeSource(server, network), store: store,
      configuration: RepositoryConfiguration(
        pageSize: 1, maximumPages: 2, retryPolicy: RetryPolicy(base: .zero), random: SplitMix64(seed: seed)))
  }

  /// Scrolls one step, and ignores a failure of the network or the server.
  ///
  /// - Parameters:
  ///   - repository: The repository.
  ///   - step: The kind of the step: 0 loads the newest page, 1 reloads, 2 to 4 load the previous page, and any other
  ///     number loads more.
  fileprivate func scroll(_ repository: SyncedRepository<Source>, step: Int) async throws {
    do throws(RepositoryError<Source.Failure>) {
      switch step {
      case 0: try await repository.loadNewest(harness.key)
      case 1: try await repository.reload(harness.key)
      case 2...4: try await repository.loadPrevious(harness.key)
      default: try await repository.loadMore(harness.key)
      }
    } catch {
      guard case .server = error else { throw error }
      try Task.checkCancellation()
    }
  }

  /// Checks that the stored elements are at most two adjacent elements of the server's list, with matching cursors.
  ///
  /// - Returns: Whether there is a previous page.
  fileprivate func checkContiguity(in store: any KeyValueStore) async throws -> Bool {
    guard let stored = try await storedValue(in: store) else { return false }
    let source = harness.makeSource(server, network)
    let storedCursors = stored.elements.map(source.cursor)
    let serverCursors = server.value(of: harness.key).elements.map(source.cursor)
    let start = storedCursors.first.flatMap { serverCursors.firstIndex(of: $0) } ?? 0
    let end = start + storedCursors.count
    guard storedCursors.count <= 2, storedCursors == Array(serverCursors[start...].prefix(storedCursors.count)) else {
      throw RepositoryConformance.Mismatch(
        "\(storedCursors) aren't at most two adjacent elements of \(serverCursors) (seed \(seed)).")
    }
    let expectedPrevious = start > 0 ? storedCursors.first : nil
    let expectedNext = end < serverCursors.count ? storedCursors.last : nil
    guard stored.previousCursor == expectedPrevious, stored.nextCursor == expectedNext else {
      throw RepositoryConformance.Mismatch(
        "\(storedCursors) of \(serverCursors) have the wrong cursors \(String(describing: stored.previousCursor)) and "
          + "\(String(describing: stored.nextCursor)) (seed \(seed)).")
    }
    return expectedPrevious != nil
  }
}
