internal import Foundation
internal import Repository

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A simulated server that records the steps of writers in a file, which outlives the processes that use it.
///
/// Each process is one writer, and may also send the steps of other writers. Each step is one line,
/// `ID LANE WRITER NUMBER PROCESS`, which ends with the id of the process that sent the step. If a process sends a step
/// while another process is sending one, the server adds the line `overlap`.
actor StepsServer {
  private let file: CInt
  /// A file that is locked by the process that is sending steps.
  private let senderLock: CInt
  private var inFlightRequestCount = 0

  init(beside place: URL) {
    let folder = place.deletingLastPathComponent()
    file = Self.openFile(folder.appending(path: "server"))
    senderLock = Self.openFile(folder.appending(path: "senders"))
  }

  private static func openFile(_ url: URL) -> CInt {
    let file = open(url.path(percentEncoded: false), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    if file < 0 { TestChild.fail("open: \(errno)") }
    return file
  }

  /// Begins a request that sends a step; ``endRequest()`` must end it.
  private func beginRequest() {
    if inFlightRequestCount == 0, flock(senderLock, LOCK_EX | LOCK_NB) != 0 { append("overlap") }
    inFlightRequestCount += 1
  }

  private func endRequest() {
    inFlightRequestCount -= 1
    if inFlightRequestCount == 0 { flock(senderLock, LOCK_UN) }
  }

  private func append(_ line: String) {
    let line = Data("\(line)\n".utf8)
    guard line.withUnsafeBytes({ write(file, $0.baseAddress, $0.count) }) == line.count else {
      TestChild.fail("write: \(errno)")
    }
  }

  /// Returns the words of each line of the file.
  private func readLines() -> [[Substring]] {
    let length = Int(lseek(file, 0, SEEK_END))
    var bytes = [UInt8](repeating: 0, count: length)
    guard pread(file, &bytes, length, 0) == length else { TestChild.fail("pread: \(errno)") }
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { $0.split(separator: " ") }
  }

  /// Returns the number of the last step of each writer in a lane.
  func lastSteps(in lane: String) -> [String: Int] {
    var steps: [String: Int] = [:]
    // The line of a step has five words, unlike the line `overlap`.
    for words in readLines() where words.count == 5 && words[1] == lane { steps[String(words[2])] = Int(words[3]) }
    return steps
  }

  /// Records a step, unless a step with the same id is already recorded.
  func take(_ step: Step, _ lane: String, _ id: MutationID) async -> MutationReply<Steps> {
    beginRequest()
    defer { endRequest() }
    // Gives another process the opportunity to send a request at the same time.
    await Task.yield()
    if !readLines().contains(where: { $0[0] == id.rawValue }) {
      append("\(id) \(lane) \(step.writer) \(step.number) \(getpid())")
    }
    return .done
  }
}

/// The last step of each writer.
struct Steps: Codable, Equatable, Sendable {
  var last: [String: Int] = [:]
}

/// A numbered step of a writer.
struct Step: RepositoryMutation, Hashable {
  let writer: String
  let number: Int

  func apply(to value: inout Steps) throws(MutationConflict) {
    value.last[writer] = max(value.last[writer] ?? 0, number)
  }
}
