// Package lambda plays AWS Lambda for tests: it runs real bootstrap programs, each copy
// of a function behind a Runtime API of its own, and is the outside world that they and
// their callers see. Nothing leaves the machine. It imports nothing of this module and
// nothing of AWS's libraries, and puts together what it sends by itself.
//
//	service := lambda.New(t)
//	worker := service.Add(lambda.Options{Name: "worker", Bootstrap: path, Timeout: 5 * time.Second})
//	result := worker.Invoke([]byte(`{}`))
//
// What it plays is what programs notice: copies that are started when there are not
// enough, that are frozen (SIGSTOP) between invocations, killed at their timeout, and
// told to end (SIGTERM, then SIGKILL) if they asked for that; invocations that nobody
// waits for, with their retries; the Invoke API, where signatures are verified; the
// extension that hands out parameters and secrets; and front doors, which turn HTTP
// requests into events and back.
//
// The idea to know: a copy is frozen at the moment at which it asks for its next
// invocation, and woken when there is one. So what a function leaves running after its
// answer does not run, as on Lambda, and a test that passes here did not rely on it.
//
// Sources: Runtime API docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html, life of a
// copy lambda-runtime-environment.html, asynchronous invocations
// invocation-async-error-handling.html, events of format 2.0
// docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html.
//
// It needs Linux, where a child can be made to die with its parent.
package lambda
