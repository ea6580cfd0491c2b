// Command cron is the function that fires the schedules of cron sources. A schedule
// invokes it each minute.
package main

import "github.com/eventgateway/gateway/functions/internal/boot"

func main() { boot.Fire() }
