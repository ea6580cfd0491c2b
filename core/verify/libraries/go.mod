module github.com/eventgateway/gateway/core/verify/libraries

go 1.26.0

require (
	github.com/eventgateway/gateway v0.0.0
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
)

require github.com/oklog/ulid/v2 v2.1.2 // indirect

replace github.com/eventgateway/gateway => ../../..
