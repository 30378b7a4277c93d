import Testing

@testable import Repository

@Suite struct VersionBarriersTests {
  @Test func `A value is accepted only if its request began after the last accepted reply arrived`() {
    var versions = VersionBarriers()
    let first = versions.now()
    #expect(accept(first, &versions) == true)
    let (second, third) = (versions.now(), versions.now())
    #expect(accept(second, &versions) == true)
    #expect(accept(third, &versions) == false)
    let fourth = versions.now()
    #expect(accept(fourth, &versions) == true)
  }

  @Test func `A value that was requested between a reply's arrival and its acceptance is accepted`() {
    var versions = VersionBarriers()
    let (first, overlapping, arrival, between) = (versions.now(), versions.now(), versions.now(), versions.now())
    #expect(versions.acceptValue(requestedAt: first, arrivedAt: arrival) == true)
    // Requested before that arrival.
    #expect(accept(overlapping, &versions) == false)
    #expect(accept(between, &versions) == true)
  }

  @Test func `No value is accepted twice`() {
    var versions = VersionBarriers()
    let request = versions.now()
    #expect(accept(request, &versions) == true)
    #expect(accept(request, &versions) == false)
  }

  @Test func `Values and changes that were requested before an external change was noticed are rejected`() {
    var versions = VersionBarriers()
    let (before, noticed, after) = (versions.now(), versions.now(), versions.now())
    versions.recordReplacement(at: noticed)
    #expect(accept(before, &versions) == false)
    #expect(versions.acceptChange(requestedAt: before, arrivedAt: versions.now()) == false)
    #expect(versions.acceptChange(requestedAt: after, arrivedAt: after) == true)
  }

  @Test func `Recording an external change after a newer value was accepted doesn't make older values acceptable`() {
    var versions = VersionBarriers()
    let (noticed, oldRequest) = (versions.now(), versions.now())
    #expect(accept(versions.now(), &versions) == true)
    versions.recordReplacement(at: noticed)
    #expect(accept(oldRequest, &versions) == false)
  }

  @Test func `Values that were requested before an accepted change arrived are rejected, but changes aren't`() {
    var versions = VersionBarriers()
    let (fetch, firstMutation, secondMutation) = (versions.now(), versions.now(), versions.now())
    #expect(versions.acceptChange(requestedAt: firstMutation, arrivedAt: versions.now()) == true)
    #expect(accept(fetch, &versions) == false)
    #expect(versions.acceptChange(requestedAt: secondMutation, arrivedAt: versions.now()) == true)
    #expect(accept(versions.now(), &versions) == true)
  }

  @Test func `Changes that were requested before an accepted value arrived are rejected`() {
    var versions = VersionBarriers()
    let (mutation, fetch) = (versions.now(), versions.now())
    #expect(accept(fetch, &versions) == true)
    #expect(versions.acceptChange(requestedAt: mutation, arrivedAt: versions.now()) == false)
  }

  @Test func `A value is accepted again after the barriers were restored`() {
    var versions = VersionBarriers()
    let earlierVersions = versions
    let request = versions.now()
    #expect(accept(request, &versions) == true)
    versions.restoreBarriers(of: earlierVersions)
    #expect(accept(request, &versions) == true)
    // Timestamps aren't reset.
    #expect(request < versions.now())
  }

  @Test(arguments: zip(1...4, [1, 10, 280, 15_400]))
  func `No interleaving of up to four requests accepts an older value after a newer one`(
    requestCount: Int, orderCount: Int
  ) {
    var search = Interleavings(requests: requestCount)
    search.forEach { steps in
      var versions = VersionBarriers()
      return findOlderAfterNewer(steps, begin: { versions.now() }, accept: { accept($0, &versions) })
    }
    #expect(search.fault == nil)
    #expect(search.count == orderCount)
  }

  @Test func `Comparing only the order of requests lets an older value follow a newer one`() {
    var search = Interleavings(requests: 2)
    search.forEach { steps in
      var begunCount = 0
      var lastAccepted = 0
      return findOlderAfterNewer(
        steps,
        begin: {
          begunCount += 1
          return begunCount
        },
        accept: { request in
          if request < lastAccepted { return false }
          lastAccepted = request
          return true
        })
    }
    // Request 1 is served first, so its reply has version 1. The reply to request 0 has version 2, but arrives first.
    #expect(search.fault == "begin 0, begin 1, serve 1, serve 0, arrive 0, arrive 1: 1 after 2")
  }

  /// Simulates the arrival of a reply, and returns whether its value is accepted.
  private func accept(_ request: VersionBarriers.Timestamp, _ versions: inout VersionBarriers) -> Bool {
    let arrival = versions.now()
    return versions.acceptValue(requestedAt: request, arrivedAt: arrival)
  }

  /// Performs the steps with a simulated server whose value changes with every request that it serves.
  ///
  /// - Returns: A description of the first older value accepted after a newer one; `nil` if there is none.
  private func findOlderAfterNewer<Request>(
    _ steps: [Interleavings.Step], begin: () -> Request, accept: (Request) -> Bool
  ) -> String? {
    var requests: [Int: Request] = [:]
    var replyVersions: [Int: Int] = [:]
    var serverVersion = 0
    var acceptedVersion = 0
    for step in steps {
      switch step {
      case .begin(let number): requests[number] = begin()
      case .serve(let number):
        serverVersion += 1
        replyVersions[number] = serverVersion
      case .arrive(let number):
        guard accept(requests[number]!) else { continue }
        let replyVersion = replyVersions[number]!
        if replyVersion < acceptedVersion { return "\(replyVersion) after \(acceptedVersion)" }
        acceptedVersion = replyVersion
      }
    }
    return nil
  }
}
