import Foundation
import Moments
import MomentsTesting
import Testing

@Suite struct MomentListItemViewModelTests {
  /// The time at which the fixture's moment was created, in seconds since 1970.
  private static let creationTime: TimeInterval = 1_605_521_360
  private static let threeHoursLater = creationTime + 3 * 3_600

  private func makeRow(
    _ moment: MomentsDetails.Moment, now: TimeInterval = Self.threeHoursLater
  ) -> MomentListItemViewModel {
    MomentListItemViewModel(
      moment: moment, momentsRepo: RepoHarness().repo, now: Date(timeIntervalSince1970: now),
      locale: Locale(identifier: "en_US"))
  }

  @Test func `A row shows the content of its moment`() {
    let likes = [
      MomentsDetails.Moment.Like(id: "1", avatar: "https://example.com/1.png"),
      MomentsDetails.Moment.Like(id: "2", avatar: "not a url"),
      MomentsDetails.Moment.Like(id: "3", avatar: "https://example.com/3.png"),
    ]
    let row = makeRow(
      .fixture(id: "9", photos: ["https://example.com/a.png", "https://example.com/b.png"], likes: likes))
    #expect(row.id == "9")
    #expect(row.userName == "Taylor Swift")
    #expect(row.userAvatarURL == URL(string: "https://example.com/avatars/taylor.png"))
    #expect(row.title == "the pic is awesome")
    #expect(row.photoURL == URL(string: "https://example.com/a.png"))
    #expect(row.likes.map(\.absoluteString) == ["https://example.com/1.png", "https://example.com/3.png"])
    #expect(row.likeCount == likes.count)
  }

  @Test func `The photo URL is nil without a photo, and if the first photo's URL is invalid`() {
    #expect(makeRow(.fixture(photos: [])).photoURL == nil)
    #expect(makeRow(.fixture(photos: ["bad url", "https://example.com/b.png"])).photoURL == nil)
  }

  @Test func `If the request excluded likes, a moment is not liked and has no likes`() {
    let row = makeRow(.fixture(isLiked: nil, likes: nil))
    #expect(!row.isLiked)
    #expect(row.likes == [])
    #expect(row.likeCount == 0)
  }

  @Test(arguments: [
    (creationTime + 60, "1 minute ago"), (threeHoursLater, "3 hours ago"),
    (creationTime + 3 * 86_400, "3 days ago"),
  ])
  func `The date is described in full words, relative to the given time`(_ now: TimeInterval, _ words: String) {
    #expect(makeRow(.fixture(createdDate: "1605521360"), now: now).postDateDescription == words)
  }

  @Test(arguments: ["nan", "-nan", "inf", "-infinity", "", "yesterday", "2020-11-16"])
  func `The description of a date that isn't a finite number is nil`(_ createdDate: String) {
    #expect(makeRow(.fixture(createdDate: createdDate)).postDateDescription == nil)
  }

  @Test func `The date is described in the given language`() {
    let row = MomentListItemViewModel(
      moment: .fixture(), momentsRepo: RepoHarness().repo, now: Date(timeIntervalSince1970: Self.threeHoursLater),
      locale: Locale(identifier: "zh_CN"))
    #expect(row.postDateDescription == "3小时前")
  }

  @Test func `Rows are equal if they show the same moment with the same content`() {
    #expect(makeRow(.fixture()) == makeRow(.fixture()))
    #expect(makeRow(.fixture()) != makeRow(.fixture(isLiked: true)))
    #expect(makeRow(.fixture()) != makeRow(.fixture(id: "1")))
    #expect(makeRow(.fixture()) != makeRow(.fixture(title: nil)))
  }
}

@Suite struct UserProfileListItemViewModelTests {
  @Test func `A profile has a name and two URLs, and an invalid URL is nil`() {
    let profile = UserProfileListItemViewModel(
      userDetails: .init(id: "0", name: "Jake Lin", avatar: "https://example.com/a.png", backgroundImage: "no url"))
    #expect(profile.name == "Jake Lin")
    #expect(profile.avatarURL == URL(string: "https://example.com/a.png"))
    #expect(profile.backgroundImageURL == nil)
  }
}
