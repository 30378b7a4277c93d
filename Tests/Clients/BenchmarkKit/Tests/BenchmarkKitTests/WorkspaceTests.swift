import BenchmarkKit
import Foundation
import Testing

@Suite struct WorkspaceTests {
  private struct Failure: Error {}

  @Test(arguments: [false, true]) func `The folder passed to a body is removed afterwards, even if the body throws`(
    bodyThrows: Bool
  ) async throws {
    try await Workspace.withNew(of: "WorkspaceTests", in: .temporaryDirectory) { workspace in
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
      #expect(!exists(folder))
    }
  }

  @Test(arguments: [false, true]) func `A workspace is removed after the body, even if the body throws`(
    bodyThrows: Bool
  ) async throws {
    var madeFolder: URL?
    do {
      try await Workspace.withNew(of: "WorkspaceTests", in: .temporaryDirectory) { workspace in
        madeFolder = try workspace.makeFolder()
        if bodyThrows { throw Failure() }
      }
      #expect(!bodyThrows)
    } catch {
      #expect(error is Failure)
    }
    let folder = try #require(madeFolder)
    #expect(!exists(folder.deletingLastPathComponent()))
  }

  @Test func `If a body throws and the removal of its workspace fails, the error of the body is thrown`() async throws {
    await #expect(throws: Failure.self) {
      try await Workspace.withNew(of: "WorkspaceTests", in: .temporaryDirectory) { workspace in
        try FileManager.default.removeItem(at: workspace.makeFolder().deletingLastPathComponent())
        throw Failure()
      }
    }
  }

  private func exists(_ folder: URL) -> Bool {
    FileManager.default.fileExists(atPath: folder.path(percentEncoded: false))
  }
}
