-- import_lock: while a file is imported into the directory of a tenant, its checks must stay true: all other writes are refused

function ImportLock.import_runs(tenant) return redis_call('EXISTS', Key.import(tenant)) == 1 end
