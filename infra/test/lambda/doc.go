// Package lambda plays AWS Lambda for tests: it runs real bootstrap programs, each copy of a
// function behind its own Runtime API. It also plays the services that the functions and their
// callers use. No request leaves the machine. It imports nothing of this module and nothing of
// AWS's libraries, and builds its messages itself.
//
//	service := lambda.New(t)
//	worker := service.Add(lambda.Options{Name: "worker", Bootstrap: path, Timeout: 5 * time.Second})
//	result := worker.Invoke([]byte(`{}`))
//
// It plays the behaviour that programs notice. It starts copies when there are not enough,
// freezes them (SIGSTOP) between invocations, and kills them at their timeout. It ends copies
// with SIGTERM and then SIGKILL if they asked for that. It retries asynchronous invocations.
// It has the Invoke API with verified signatures, the extension for parameters and secrets,
// and doors that turn HTTP requests into events and results into responses.
//
// The idea to know: a copy is frozen when it asks for its next invocation, and woken when
// there is one. So work that a function leaves running after its answer does not run, as on
// Lambda, and a test that passes here did not rely on it.
//
// Sources: Runtime API docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html, life of a copy
// lambda-runtime-environment.html, asynchronous invocations
// invocation-async-error-handling.html, events of format 2.0
// docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html.
//
// It needs Linux, where a child process can die with its parent.
package lambda
