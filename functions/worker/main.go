// Command worker is the function that delivers due jobs. A schedule invokes it each minute.
// Between these ticks, functions that store work for it nudge it.
package main

import "github.com/eventgateway/gateway/functions/internal/boot"

func main() { boot.Work() }
