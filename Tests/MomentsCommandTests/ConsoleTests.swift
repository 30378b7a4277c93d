import Foundation
import Testing

@testable import MomentsCommand

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

@Suite(.timeLimit(.minutes(15))) struct ConsoleTests {
  /// Runs the program with `--help` until it ends, with `output` as its standard output.
  private func runHelp(output: FileHandle) throws -> (reason: Process.TerminationReason, status: Int32, errors: String)
  {
    let process = Process()
    let program: URL = try #require(ProgramInTerminalTests.program)
    process.executableURL = program
    process.arguments = ["--help"]
    let errorPipe = Pipe()
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = errorPipe
    try process.run()
    let errorBytes = try errorPipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return (process.terminationReason, process.terminationStatus, String(decoding: errorBytes, as: UTF8.self))
  }

  @Test(.enabled(if: FileManager.default.fileExists(atPath: "/dev/full")))
  func `An output that cannot be written is reported as a failure`() throws {
    let fullDevice = try FileHandle(forWritingTo: URL(filePath: "/dev/full"))
    let result = try runHelp(output: fullDevice)
    #expect(result.reason == .exit)
    #expect(result.status == CommandStatus.inputOutput.rawValue)
    #expect(
      result.errors
        == "moments: The output could not be written: \(String(cString: strerror(ENOSPC))) (errno \(ENOSPC)). "
        + "Free space at its destination, or redirect it.\n")
  }

  @Test func `Closing the reading end of the output ends the program without an error message`() throws {
    let pipe = Pipe()
    try pipe.fileHandleForReading.close()
    let result = try runHelp(output: pipe.fileHandleForWriting)
    #expect(result.errors == "")
    // Normally, `SIGPIPE` ends the program. If the tests were started with `SIGPIPE` ignored, the program exits with
    // the status that shells use for the signal.
    let expected = result.reason == .uncaughtSignal ? SIGPIPE : CommandStatus.brokenPipe.rawValue
    #expect(result.status == expected)
  }
}
