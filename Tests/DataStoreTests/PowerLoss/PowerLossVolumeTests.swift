import Foundation
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite(.requiresPowerLossVolume, .timeLimit(.minutes(15))) struct PowerLossVolumeTests {
  @Test func `Unsynchronized changes are lost`() async throws {
    let mountPoint = try await PowerLossVolume.run { volume in
      try write("durable", to: "kept", in: volume, synchronizing: true)
      try write("pending", to: "empty", in: volume, synchronizing: false)
      try synchronizeFolder(volume.url)
      try write("durable", to: "nameless", in: volume, synchronizing: true)
      try await volume.cut()
      #expect(try await volume.isCut())
      #expect(throws: (any Error).self) { try FileManager.default.contentsOfDirectory(atPath: path(volume.url)) }
      try await volume.restore(.forget)
      #expect(try FileManager.default.contentsOfDirectory(atPath: path(volume.url)).sorted() == ["empty", "kept"])
      #expect(try Data(contentsOf: volume.url.appending(path: "kept")) == Data("durable".utf8))
      #expect(try Data(contentsOf: volume.url.appending(path: "empty")).isEmpty)
      return volume.url
    }
    #expect(!FileManager.default.fileExists(atPath: path(mountPoint)))
  }

  @Test func `An armed volume loses power after the given number of operations, unless it is disarmed`() async throws {
    try await PowerLossVolume.run { volume in
      let countBefore = try await volume.operationCount()
      // The two operations create the file and write it.
      try await volume.arm(after: 2)
      try write("text", to: "file", in: volume, synchronizing: false)
      #expect(try await volume.operationCount() - countBefore == 2)
      #expect(throws: POSIXError(.EIO)) { try write("text", to: "other", in: volume, synchronizing: false) }
      // Any seed will do, even the largest.
      try await volume.restore(.keep(seed: .max))
      try await volume.arm(after: 1)
      try await volume.disarm()
      try write("text", to: "file", in: volume, synchronizing: true)
    }
  }

  @Test func `The volume is unmounted if the body throws`() async throws {
    var mountPoint: URL?
    await #expect(throws: CancellationError.self) {
      try await PowerLossVolume.run { volume in
        mountPoint = volume.url
        throw CancellationError()
      }
    }
    #expect(!FileManager.default.fileExists(atPath: path(try #require(mountPoint))))
  }

  @Test func `Several volumes can be mounted, and receive commands, at the same time`() async throws {
    try await withThrowingTaskGroup { group in
      for _ in 0..<4 {
        group.addTask {
          try await PowerLossVolume.run { volume in
            try write("text", to: "file", in: volume, synchronizing: true)
            let counts = try await withThrowingTaskGroup(of: Int.self) { group in
              for _ in 0..<50 { group.addTask { try await volume.operationCount() } }
              return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            // The operations create the file, write it, and synchronize it.
            #expect(counts == [3])
          }
        }
      }
      try await group.waitForAll()
    }
  }
}

private func path(_ url: URL) -> String {
  url.path(percentEncoded: false)
}

private func write(
  _ text: String, to name: String, in volume: PowerLossVolume, synchronizing: Bool
) throws {
  let descriptor = open(path(volume.url.appending(path: name)), O_WRONLY | O_CREAT | O_TRUNC, 0o600)
  guard descriptor != -1 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EINVAL) }
  defer { close(descriptor) }
  let bytes = Array(text.utf8)
  guard write(descriptor, bytes, bytes.count) == bytes.count else {
    throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EINVAL)
  }
  if synchronizing, fsync(descriptor) != 0 { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EINVAL) }
}

private func synchronizeFolder(_ url: URL) throws {
  let descriptor = open(path(url), O_RDONLY | O_DIRECTORY)
  guard descriptor != -1 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EINVAL) }
  defer { close(descriptor) }
  if fsync(descriptor) != 0 { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EINVAL) }
}
