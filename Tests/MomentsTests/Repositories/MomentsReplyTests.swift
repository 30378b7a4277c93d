import MomentsTesting
import Testing

@testable import Moments

/// What is stored of a reply, by what was stored before.
@Suite struct MomentsReplyTests {
  private struct Case: Sendable, CustomTestStringConvertible {
    let page: String
    let stored: String
    let merged: String
    let why: String

    var testDescription: String { "\(page) on \(stored): \(why)" }
  }

  /// A timeline with a moment for each character, more behind the last, and an end of its own.
  private static func timeline(_ momentIDs: String, hasNextPage: Bool = true) -> MomentsDetails {
    var details = MomentsDetails.fixture(momentIDs: momentIDs.map { "\($0)" })
    details.pageInfo = .init(endCursor: momentIDs.last.map { "\($0)" }, hasNextPage: hasNextPage)
    return details
  }

  @Test(arguments: [
    Case(page: "012", stored: "012345", merged: "012345", why: "Nothing has changed."),
    Case(page: "ab0", stored: "012345", merged: "ab012345", why: "Two are new."),
    Case(page: "abc", stored: "012345", merged: "abc", why: "Nobody knows what lies between."),
    Case(page: "041", stored: "012345", merged: "041235", why: "One moved up, and all before the joint are there."),
    Case(page: "210", stored: "012345", merged: "210345", why: "The order before the joint is the page's."),
    Case(page: "014", stored: "012345", merged: "014", why: "Where two of those before the joint went is not known."),
    Case(page: "023", stored: "012345", merged: "023", why: "Where one of those before the joint went is not known."),
    Case(page: "123", stored: "012345", merged: "123", why: "Where the first one went is not known."),
    Case(page: "501", stored: "012345", merged: "501", why: "The cursor leads on from what is in the page now."),
    Case(page: "345", stored: "345", merged: "345", why: "Nothing is stored behind the page."),
  ])
  private func `A reload keeps what is stored behind its page only where none can be missing`(
    _ example: Case
  ) {
    let reply = MomentsReply(request: .newestPage, details: Self.timeline(example.page))
    #expect(reply.merged(with: Self.timeline(example.stored)) == Self.timeline(example.merged))
  }

  @Test func `Where the server refused to give what comes behind the stored moments, a reload keeps none of them`() {
    let reply = MomentsReply(request: .newestPage, details: Self.timeline("012"))
    let stored = Self.timeline("012345")
    #expect(reply.merged(with: stored, refusedCursor: "5") == Self.timeline("012"))
    // A refusal at another end says nothing of this one.
    #expect(reply.merged(with: stored, refusedCursor: "4") == stored)
    let whole = Self.timeline("012345", hasNextPage: false)
    #expect(reply.merged(with: whole, refusedCursor: "5") == whole)
  }

  @Test func `A page behind which the server has nothing is the whole timeline`() {
    let page = Self.timeline("012", hasNextPage: false)
    #expect(MomentsReply(request: .newestPage, details: page).merged(with: Self.timeline("012345")) == page)
  }

  @Test func `A next page is stored only where it begins at the end of what is stored`() {
    let reply = MomentsReply(request: .nextPage(after: "2"), details: Self.timeline("345"))
    #expect(reply.merged(with: Self.timeline("012")) == Self.timeline("012345"))
    #expect(reply.merged(with: Self.timeline("0123")) == nil)
    #expect(reply.merged(with: nil) == nil)
  }
}
