internal import DataStore
internal import Foundation
internal import MulticastTesting
public import Repository

extension RepositoryConformance where Source: BidirectionalPagedSource {
  /// The checks for sources whose pages are fetched in both directions, beside ``checks``.
  ///
  /// The server of the harness has at least three elements at first. Its pages are those of
  /// ``InMemoryServer/bidirectionalPage(of:before:limit:)``.
  public static var pagingChecks: [Check] {
    [
      Check("Pages", "However a reader scrolls, what is stored is a stretch of the server's list", body: checkPages)
    ]
  }

  /// Scrolls at random over a network that loses and repeats, with a relaunch.
  @Sendable private static func checkPages(_ harness: RepositoryHarness<Source>) async throws {
    let bench = Bench(harness, seed: 1, .rough)
    let open = try await harness.makePlace()
    var random = SplitMix64(seed: 1)
    try await bench.whileNetworkRuns {
      for _ in 1...2 {
        let store = try await open()
        let repository = bench.makeScrollingRepository(store)
        try await bench.load(repository)
        // The list begins behind the newest element from here on, for the first time.
        repeat { try await bench.scroll(repository, by: 7) } while try await !bench.checkStretch(in: store)
        for _ in 1...8 {
          try await bench.scroll(repository, by: .random(in: 0..<8, using: &random))
          _ = try await bench.checkStretch(in: store)
        }
      }
    }
  }
}

extension RepositoryConformance.Bench where Source: BidirectionalPagedSource {
  /// A repository that keeps two pages of one element.
  fileprivate func makeScrollingRepository(_ store: any KeyValueStore) -> SyncedRepository<Source> {
    SyncedRepository(
      harness.makeSource(server, network), store: store,
      configuration: RepositoryConfiguration(
        pageSize: 1, maximumPages: 2, retryPolicy: RetryPolicy(base: .zero), random: SplitMix64(seed: seed)))
  }

  /// Scrolls one step, unless the network is in the way.
  fileprivate func scroll(_ repository: SyncedRepository<Source>, by step: Int) async throws {
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

  /// - Returns: Whether there is a previous page.
  fileprivate func checkStretch(in store: any KeyValueStore) async throws -> Bool {
    guard let stored = try await stored(in: store) else { return false }
    let source = harness.makeSource(server, network)
    let (found, all) = (
      stored.elements.map(source.cursor), server.value(of: harness.key).elements.map(source.cursor)
    )
    let start = found.first.flatMap { all.firstIndex(of: $0) } ?? 0
    guard found.count <= 2, found == Array(all[start...].prefix(found.count)) else {
      throw RepositoryConformance.Mismatch("\(found) is no stretch of \(all), of two pages of one (seed \(seed)).")
    }
    let (previous, next) = (start > 0 ? found.first : nil, start + found.count < all.count ? found.last : nil)
    guard stored.previousCursor == previous, stored.nextCursor == next else {
      throw RepositoryConformance.Mismatch(
        "\(found) of \(all) has the cursors \(String(describing: stored.previousCursor)) and "
          + "\(String(describing: stored.nextCursor)) (seed \(seed)).")
    }
    return previous != nil
  }
}
