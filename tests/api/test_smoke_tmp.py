import json, pytest
pytestmark = pytest.mark.django_db(transaction=True)
def test_slice(client):
    r = client.post("/api/metadata/taskdefs", json.dumps([{"name":"a","retryCount":1,"responseTimeoutSeconds":60,"x":1}]), content_type="application/json"); print(r.status_code, r.content, r.headers)
    r = client.post("/api/metadata/workflow", json.dumps({"name":"w","tasks":[{"name":"a","taskReferenceName":"a1","inputParameters":{"k":"${workflow.input.k}"}},{"name":"b","taskReferenceName":"b1","type":"SIMPLE"}]}), content_type="application/json"); print(r.status_code, r.content)
    r = client.get("/api/metadata/workflow/w"); print(r.json())
    r = client.get("/api/metadata/taskdefs/a"); print(r.json())
    r = client.post("/api/workflow/w", '{"k":123456789012345678901234567890}', content_type="application/json"); print(r.status_code, r.content, r.headers); wid=r.content.decode()
    r = client.get("/api/tasks/poll/batch/a?workerid=me&count=3&timeout=100"); print(r.status_code, r.content); t=r.json()[0]
    r = client.post("/api/tasks", json.dumps({"workflowInstanceId":wid,"taskId":t["taskId"],"status":"COMPLETED","outputData":{"o":1},"logs":[{"log":"hi","createdTime":1}]}), content_type="application/json"); print(r.status_code, r.content)
    r = client.get(f"/api/workflow/{wid}"); print(json.dumps(r.json(),indent=1))
    r = client.get("/api/tasks/poll/b"); print(r.status_code); t=r.json()
    r = client.post("/api/tasks/update-v2", json.dumps({"workflowInstanceId":wid,"taskId":t["taskId"],"status":"COMPLETED"}), content_type="application/json"); print(r.status_code, r.headers, r.content)
    r = client.get(f"/api/workflow/{wid}/status?includeOutput=True"); print(r.json())
    for m,u in [("get","/api/nope"),("put","/api/tasks"),("get","/api/workflow/"),("get","/api/tasks/nope"),("post","/api/token"),("get","/health"),("get","/api/version"),("get","/api"),("get","/")]:
        r = getattr(client,m)(u); print(m,u,r.status_code,r.content[:200], dict(r.headers))
