// Command worker is the function that delivers what is due. A schedule invokes it each
// minute, and whatever stores something for it in between.
package main

import "github.com/eventgateway/gateway/functions/internal/boot"

func main() { boot.Work() }
