import BenchmarkKit
import Foundation
import Testing

@Suite struct WorkspaceTests {
  private struct Failure: Error {}

  @Test(arguments: [false, true]) func `The folder passed to a body is removed afterwards, even if the body throws`(
    bodyThrows: Bool
  ) async throws {
    let workspace = try Workspace(of: "WorkspaceTests", in: FileManager.default.temporaryDirectory)
    defer { try? workspace.remove() }
    var passedFolder: URL?
    do {
      try await workspace.withFolder { folder in
        passedFolder = folder
        try Data("bytes".utf8).write(to: folder.appending(path: "file"))
        if bodyThrows { throw Failure() }
      }
      #expect(!bodyThrows)
    } catch {
      #expect(error is Failure)
    }
    let folder = try #require(passedFolder)
    #expect(!FileManager.default.fileExists(atPath: folder.path(percentEncoded: false)))
  }
}
