import DataStore
import Repositories
import Repository
import RepositoryTesting
import Testing

@Suite(.timeLimit(.minutes(15))) struct CommentsConformanceTests {
  typealias Conformance = RepositoryConformance<CommentsSource>

  private static let comments = (1...6).map { Comment(author: "Jake", text: "\($0)") }

  /// Creates a harness whose `makePlace` returns a closure; each call of the closure opens a store for the same data.
  private static func makeHarness(
    makePlace: @escaping @Sendable () async throws -> RepositoryHarness<CommentsSource>.Place
  ) -> RepositoryHarness<CommentsSource> {
    RepositoryHarness(
      key: "post", initial: Paged(Array(comments[...2])),
      mutations: [
        .add(comments[3]), .edit(comments[0].id, text: "one"), .delete(comments[1].id), .add(comments[4]),
        .add(comments[5]),
      ],
      makeSource: { CommentsSource(SimulatedCommentsClient(server: $0, network: $1)) }, makePlace: makePlace)
  }

  @Test(arguments: Conformance.checks + Conformance.pagingChecks)
  func `The comments keep the laws with a store in memory`(check: Conformance.Check) async throws {
    try await check.run(
      on: Self.makeHarness {
        let storage = InMemoryStorage()
        return { InMemoryStore(storage: storage) }
      })
  }

  @Test(arguments: Conformance.checks + Conformance.pagingChecks)
  func `The comments keep the laws with a store in files`(check: Conformance.Check) async throws {
    try await check.run(
      on: Self.makeHarness {
        let folder = TemporaryFolder()
        return { FileStore(folder: folder.url) }
      })
  }
}
