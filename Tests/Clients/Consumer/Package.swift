// swift-tools-version: 6.1

import PackageDescription

let package = Package(
  name: "Consumer",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "Moments", path: "../../..")],
  targets: [
    .executableTarget(
      name: "Consumer",
      dependencies: [
        .product(name: "DataStore", package: "Moments"),
        .product(name: "GraphQLClient", package: "Moments"),
        .product(name: "Moments", package: "Moments"),
        .product(name: "Multicast", package: "Moments"),
        .product(name: "Repository", package: "Moments"),
        .product(name: "SignIn", package: "Moments"),
        .product(name: "Todo", package: "Moments"),
      ])
  ]
)
