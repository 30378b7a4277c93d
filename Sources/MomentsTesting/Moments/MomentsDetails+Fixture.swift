public import Moments

extension MomentsDetails {
  /// Returns a timeline for tests, by default that of "Jake Lin", with one moment for each of `momentIDs`.
  public static func fixture(
    userID: String = "0", name: String = "Jake Lin", momentIDs: [String] = ["0"], likedMomentIDs: Set<String> = []
  ) -> MomentsDetails {
    MomentsDetails(
      userDetails: UserDetails(
        id: userID, name: name, avatar: "https://example.com/avatars/\(userID).png",
        backgroundImage: "https://example.com/backgrounds/\(userID).png"),
      moments: momentIDs.map { .fixture(id: $0, isLiked: likedMomentIDs.contains($0)) })
  }
}

extension MomentsDetails.Moment {
  /// Returns a moment for tests, by "Taylor Swift", and by default with one photo.
  public static func fixture(
    id: String = "0", title: String? = "the pic is awesome", photos: [String] = ["https://example.com/photos/0.png"],
    createdDate: String = "1605521360", isLiked: Bool? = false,
    likes: [MomentsDetails.Moment.Like]? = []
  ) -> Self {
    Self(
      id: id,
      userDetails: MomentsDetails.Moment.MomentUserDetails(
        name: "Taylor Swift", avatar: "https://example.com/avatars/taylor.png"),
      type: .photos, title: title, url: nil, photos: photos, createdDate: createdDate, isLiked: isLiked, likes: likes)
  }
}
